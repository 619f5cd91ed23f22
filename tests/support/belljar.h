// The program under test.
#pragma once

#include <string>
#include <vector>

#include "support/process.h"

namespace belljar::testing {

// The built program: $BELLJAR, else the one beside the tests.
[[nodiscard]] std::string belljar_program();

// $BELLJAR_TEST_MODE has a test run once more: `bwrap` over the bwrap tier, `bwrap-SUITE` with the bubblewrap of that
// suite of Debian's, which is in a folder of $BELLJAR_TEST_BUBBLEWRAPS and then the first in PATH.
[[nodiscard]] bool by_bubblewrap();
// `ssh` has it run on a target, which SshLoop (support/ssh_loop.h) makes for the program; its folder is
// $BELLJAR_TEST_LOOP.
[[nodiscard]] bool over_ssh();
// The program that these launches use, as PATH finds it.
[[nodiscard]] std::string bubblewrap_program();

// `belljar run OPTIONS -- WORDS` in `folder`, in the mode that $BELLJAR_TEST_MODE names, if any.
[[nodiscard]] Command sealed(const std::string& folder, const std::vector<std::string>& words,
                             const std::vector<std::string>& options = {});

// As above with a script for /bin/sh.
[[nodiscard]] Command sealed_script(const std::string& folder, const std::string& script,
                                    const std::vector<std::string>& options = {});

// Command lines of processes of this host, whoever's they are, that hold `marker`.
[[nodiscard]] std::vector<std::string> processes_with(const std::string& marker);

// Asks `done` again and again until it says yes (true) or `patience` ends (false).
bool eventually(const std::function<bool()>& done, std::chrono::milliseconds patience = std::chrono::seconds(30));

}  // namespace belljar::testing
