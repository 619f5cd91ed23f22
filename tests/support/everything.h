// What a guest can read at all, for secrets that it must not have.
#pragma once

#include <string>

namespace belljar::testing {

// A script that prints its environment, what /proc tells of every process and their memory, and each file below / and
// below the home that has changed since `mark`, an own file made before the launch: no other can hold a secret of the
// launch. It plants a word in a file of each of these folders and finds it, else the search shows nothing.
inline std::string everything_since(const std::string& mark) {
  return R"(
env
for folder in ~ /tmp /var/tmp /run /dev/shm .; do echo "planted in" "$folder" >"$folder/planted"; done
for process in /proc/[0-9]*; do
  for file in environ cmdline comm status stat maps mountinfo limits cgroup wchan stack syscall; do
    cat "$process/$file" 2>/dev/null | tr '\0' '\n'
  done
  ls -l "$process/fd" "$process/root/" "$process/cwd/" 2>/dev/null
  for file in "$process"/fd/*; do [ ! -f "$file" ] || cat "$file"; done 2>/dev/null
done
python3 - <<'END'
import glob, sys
for maps in glob.glob('/proc/[0-9]*/maps'):
    try:
        lines, memory = open(maps).read().splitlines(), open(maps[:-4] + 'mem', 'rb')
    except OSError:
        continue
    for line in lines:
        words = line.split()
        first, last = (int(end, 16) for end in words[0].split('-'))
        if 'rw' not in words[1]:
            continue
        try:
            memory.seek(first)
            sys.stdout.buffer.write(memory.read(last - first))
        except OSError:
            pass
END
echo
files=$(find / ~ \( -path /proc -o -path /sys \) -prune -o -type f -cnewer )" +
         mark + R"( -print 2>/dev/null | sort -u)
printf '%s\n' "$files" | while read -r file; do cat "$file"; done 2>/dev/null
echo "found $(printf '%s\n' "$files" | grep -c '/planted$') places"
rm -f ~/planted /tmp/planted /var/tmp/planted /run/planted /dev/shm/planted planted
)";
}
inline constexpr const char* kFoundEverywhere = "found 6 places\n";

}  // namespace belljar::testing
