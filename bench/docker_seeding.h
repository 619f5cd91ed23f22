// How long a task's storage takes to fill, beside a plain copy of the same files into memory.
#pragma once

namespace bench {

// Prints a table and a line of JSON. False when something failed. Needs root, for a tmpfs.
[[nodiscard]] bool measure_seeding(int rounds);

}  // namespace bench
