#include "remote/target.h"

#include <sha2.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/io.h"
#include "base/text.h"
#include "remote/quote.h"

namespace belljar::remote {
namespace {

constexpr size_t kMaxProgram = size_t{256} << 20U;

// No quote, backslash, newline or `!`: a login shell of any kind passes them on as they are (remote/quote.h).
constexpr std::string_view kCheck =
    "echo; echo belljar facts; echo architecture=$(uname -m); echo kernel=$(uname -r); echo \"home=$HOME\"; "
    "echo uid=$(id -u); \"${SHELL:-/bin/sh}\" -l -c env </dev/null 2>/dev/null | sed -n s/^PATH=/path=/p | tail -n 1; "
    "echo user_namespaces=$(cat /proc/sys/user/max_user_namespaces 2>/dev/null); "
    "for t in sha256sum mktemp head tail mv bwrap docker; do command -v $t >/dev/null 2>&1 && echo tool=$t; done; "
    "echo end=";
// Three hashes, three sizes and the byte (from 1) where the second program begins. No third program: no file of it.
constexpr std::string_view kCopy =
    "umask 077; p=\"${XDG_CACHE_HOME:-$HOME/.cache}/belljar/programs\"; mkdir -p \"$p\" && "
    "t=$(mktemp -d \"$p/new.XXXXXX\") && cat >\"$t/all\" && head -c $4 \"$t/all\" >\"$t/belljar\" && "
    "tail -c +$7 \"$t/all\" | head -c $5 >\"$t/belljar-guest\" && tail -c $6 \"$t/all\" >\"$t/belljar-notify\" && "
    "rm \"$t/all\" && chmod 755 \"$t/belljar\" \"$t/belljar-guest\" \"$t/belljar-notify\" && "
    "a=$(sha256sum <\"$t/belljar\") && b=$(sha256sum <\"$t/belljar-guest\") && c=$(sha256sum <\"$t/belljar-notify\") "
    "&& "
    "[ \"${a%% *}\" = $1 ] && [ \"${b%% *}\" = $2 ] && { [ \"${c%% *}\" = $3 ] || { [ $3 = none ] && [ $6 = 0 ] && rm "
    "\"$t/belljar-notify\"; }; } && rm -rf \"$p/$1-$2-$3\" && mv \"$t\" \"$p/$1-$2-$3\"";
constexpr std::string_view kStart =
    "d=\"${XDG_CACHE_HOME:-$HOME/.cache}/belljar/programs/$1-$2-$3\"; "
    "m() { echo; echo belljar programs missing; exit 0; }; [ -r \"$d/belljar\" ] && [ -r \"$d/belljar-guest\" ] || m; "
    "[ $3 = none ] || [ -r \"$d/belljar-notify\" ] || m; "
    "exec 3<\"$d/belljar\" 4<\"$d/belljar-guest\"; a=$(sha256sum <&3); b=$(sha256sum <&4); "
    "[ \"${a%% *}\" = $1 ] && [ \"${b%% *}\" = $2 ] || m; "
    "[ $3 = none ] || { exec 5<\"$d/belljar-notify\"; c=$(sha256sum <&5); [ \"${c%% *}\" = $3 ]; } || m; "
    "exec /proc/self/fd/3 remote-end";
constexpr std::string_view kNone = "none";

std::string hash_of(std::string_view bytes) {
  std::array<char, SHA256_DIGEST_STRING_LENGTH> text{};
  ::SHA256Data(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), text.data());
  return text.data();
}

base::Result<std::string> read_program(const std::string& path) {
  return base::read_regular_file(path, kMaxProgram, true);
}

}  // namespace

std::string_view check_script() {
  return kCheck;
}

base::Result<TargetFacts> parse_facts(std::string_view output) {
  constexpr std::string_view kHead = "\nbelljar facts\n";
  TargetFacts out;
  const size_t start = output.rfind(kHead);
  if (start != std::string_view::npos) {
    for (const std::string_view line : base::split(output.substr(start + kHead.size()), '\n')) {
      const size_t equals = line.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view key = line.substr(0, equals);
      const std::string_view value = line.substr(equals + 1);
      if (key == "end") return out;
      if (key == "tool") out.tools.emplace_back(value);
      const std::pair<std::string_view, std::string*> words[] = {{"architecture", &out.architecture},
                                                                 {"kernel", &out.kernel},
                                                                 {"home", &out.home},
                                                                 {"uid", &out.uid},
                                                                 {"path", &out.path},
                                                                 {"user_namespaces", &out.user_namespaces}};
      for (const auto& [name, word] : words) {
        if (key == name) *word = value;
      }
    }
  }
  return base::refuse("check the target", "", "it did not answer as a Unix shell does, refusing",
                      "a login shell there that runs 'exec /bin/sh -c …' is needed");
}

std::string facts_text(const TargetFacts& facts) {
  std::string out = "\nbelljar facts\narchitecture=" + facts.architecture + "\nkernel=" + facts.kernel +
                    "\nhome=" + facts.home + "\nuid=" + facts.uid + "\npath=" + facts.path +
                    "\nuser_namespaces=" + facts.user_namespaces + "\n";
  for (const std::string& tool : facts.tools) out += "tool=" + tool + "\n";
  return out + "end=\n";
}

std::string own_architecture() {
  utsname name{};
  ::uname(&name);
  return static_cast<const char*>(name.machine);
}

base::Status check_facts(std::string_view destination, const TargetFacts& facts, std::string_view architecture) {
  constexpr std::string_view kOperation = "use the target";
  if (facts.architecture != architecture) {
    return base::refuse(
        kOperation, destination,
        "it is a " + facts.architecture + ", and this belljar is for " + std::string(architecture) + ", refusing",
        "install belljar there and run it by hand");
  }
  if (!facts.home.starts_with('/')) return base::refuse(kOperation, destination, "no home is set there, refusing");
  if (facts.uid != "0" && facts.user_namespaces == "0") {
    return base::refuse(kOperation, destination, "user namespaces are off there, refusing",
                        "sysctl user.max_user_namespaces, then 'belljar target check'");
  }
  for (const char* tool : {"sha256sum", "mktemp", "head", "tail", "mv"}) {
    if (std::ranges::find(facts.tools, tool) != facts.tools.end()) continue;
    return base::refuse(kOperation, destination, std::string("it has no ") + tool + ", refusing",
                        "install coreutils there, then 'belljar target check'");
  }
  return {};
}

base::Result<Programs> identify_programs(const std::string& belljar, const std::string& guest,
                                         const std::string& notify) {
  Programs out{belljar, guest, {}, {}, {}, std::string(kNone)};
  BELLJAR_ASSIGN(const std::string first, read_program(belljar));
  BELLJAR_ASSIGN(const std::string second, read_program(guest));
  out.belljar_hash = hash_of(first);
  out.guest_hash = hash_of(second);
  if (::access(notify.c_str(), F_OK) == 0) {
    BELLJAR_ASSIGN(const std::string third, read_program(notify));
    out.notify = notify;
    out.notify_hash = hash_of(third);
  }
  return out;
}

base::Result<TargetFacts> check_target(std::string_view destination) {
  BELLJAR_ASSIGN(const std::string command, shell_command(kCheck, {}));
  BELLJAR_ASSIGN(const std::string output, ssh_output(destination, command));
  return parse_facts(output);
}

base::Status copy_programs(std::string_view destination, const Programs& programs) {
  BELLJAR_ASSIGN(std::string all, read_program(programs.belljar));
  BELLJAR_ASSIGN(const std::string guest, read_program(programs.guest));
  std::string notify;
  if (!programs.notify.empty()) {
    BELLJAR_ASSIGN(notify, read_program(programs.notify));
  }
  const size_t first = all.size();
  all += guest + notify;
  BELLJAR_ASSIGN(
      const std::string command,
      shell_command(kCopy, {programs.belljar_hash, programs.guest_hash, programs.notify_hash, std::to_string(first),
                            std::to_string(guest.size()), std::to_string(notify.size()), std::to_string(first + 1)}));
  BELLJAR_ASSIGN(const std::string output, ssh_output(destination, command, all));
  return {};
}

base::Result<Ssh> start_far_end(std::string_view destination, const Programs& programs) {
  BELLJAR_ASSIGN(const std::string command,
                 shell_command(kStart, {programs.belljar_hash, programs.guest_hash, programs.notify_hash}));
  return Ssh::start(destination, command);
}

}  // namespace belljar::remote
