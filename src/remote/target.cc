#include "remote/target.h"

#include <sha2.h>
#include <sys/utsname.h>

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
// The folder's name, and of each program its name, hash, first byte (from 1) and size in what comes in. Launches that
// copy at the same time leave the first one's folder as it is: they may be about to execute what is in it.
constexpr std::string_view kCopy =
    "umask 077; p=\"${XDG_CACHE_HOME:-$HOME/.cache}/belljar/programs\"; n=$1; shift; mkdir -p \"$p\" && "
    "t=$(mktemp -d \"$p/new.XXXXXX\") && cat >\"$t/all\" || exit 1; "
    "w() { while [ $# -gt 0 ]; do tail -c +$3 \"$t/all\" | head -c $4 >\"$t/$1\" && chmod 755 \"$t/$1\" || return 1; "
    "shift 4; done; }; "
    "g() { d=$1; shift; while [ $# -gt 0 ]; do [ -r \"$d/$1\" ] && h=$(sha256sum <\"$d/$1\") && "
    "[ \"${h%% *}\" = $2 ] || return 1; shift 4; done; }; "
    "w \"$@\" && g \"$t\" \"$@\" && rm \"$t/all\" || { rm -rf \"$t\"; exit 1; }; mv -T \"$t\" \"$p/$n\" 2>/dev/null && "
    "exit 0; "
    "g \"$p/$n\" \"$@\" && { rm -rf \"$t\"; exit 0; }; rm -rf \"$p/$n\" && mv \"$t\" \"$p/$n\"";
// The folder's name and four hashes. 3 to 6 become the programs' descriptors, what is executed being 3; the last two
// programs need not be there.
constexpr std::string_view kStart =
    "d=\"${XDG_CACHE_HOME:-$HOME/.cache}/belljar/programs/$1\"; shift; "
    "m() { echo; echo belljar programs missing; exit 0; }; "
    "c() { [ $2 = none ] || { [ -r \"$d/$1\" ] || m; }; }; c belljar $1; c belljar-guest $2; c belljar-notify $3; "
    "c belljar-tls $4; exec 3<\"$d/belljar\" 4<\"$d/belljar-guest\"; "
    "[ $3 = none ] || exec 5<\"$d/belljar-notify\"; [ $4 = none ] || exec 6<\"$d/belljar-tls\"; "
    "h() { s=$(sha256sum); [ \"${s%% *}\" = $1 ] || m; }; "
    "h $1 <&3; h $2 <&4; [ $3 = none ] || h $3 <&5; [ $4 = none ] || h $4 <&6; "
    "exec /proc/self/fd/3 remote-end";

std::string hash_of(std::string_view bytes) {
  std::array<char, SHA256_DIGEST_STRING_LENGTH> text{};
  ::SHA256Data(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), text.data());
  return text.data();
}

base::Result<std::string> read_program(const std::string& path) {
  return base::read_regular_file(path, kMaxProgram, true);
}

std::array<std::pair<const char*, const Program*>, 4> named(const Programs& programs) {
  return {{{"belljar", &programs.belljar},
           {"belljar-guest", &programs.guest},
           {"belljar-notify", &programs.notify},
           {"belljar-tls", &programs.tls}}};
}

// One name for all of them: four hashes would be longer than a name may be.
std::string folder_of(const Programs& programs) {
  std::string all;
  for (const auto& [name, program] : named(programs)) all += program->hash + "\n";
  return hash_of(all);
}

}  // namespace

std::string_view check_script() {
  return kCheck;
}

std::string_view copy_script() {
  return kCopy;
}

std::string_view start_script() {
  return kStart;
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
                                         const std::string& notify, const std::string& tls) {
  Programs out;
  const auto identify = [](const std::string& path, Program& program) -> base::Status {
    program = {path, kNoProgram};
    if (path.empty()) return {};
    BELLJAR_ASSIGN(const std::string content, read_program(path));
    program.hash = hash_of(content);
    return {};
  };
  BELLJAR_TRY(identify(belljar, out.belljar));
  BELLJAR_TRY(identify(guest, out.guest));
  BELLJAR_TRY(identify(notify, out.notify));
  BELLJAR_TRY(identify(tls, out.tls));
  return out;
}

base::Result<TargetFacts> check_target(std::string_view destination) {
  BELLJAR_ASSIGN(const std::string command, shell_command(kCheck, {}));
  BELLJAR_ASSIGN(const std::string output, ssh_output(destination, command));
  return parse_facts(output);
}

base::Status copy_programs(std::string_view destination, const Programs& programs) {
  std::string all;
  std::vector<std::string> words{folder_of(programs)};
  for (const auto& [name, program] : named(programs)) {
    if (program->path.empty()) continue;
    BELLJAR_ASSIGN(const std::string content, read_program(program->path));
    words.insert(words.end(), {name, program->hash, std::to_string(all.size() + 1), std::to_string(content.size())});
    all += content;
  }
  BELLJAR_ASSIGN(const std::string command, shell_command(kCopy, words));
  BELLJAR_ASSIGN(const std::string output, ssh_output(destination, command, all));
  return {};
}

base::Result<Ssh> start_far_end(std::string_view destination, const Programs& programs) {
  BELLJAR_ASSIGN(const std::string command,
                 shell_command(kStart, {folder_of(programs), programs.belljar.hash, programs.guest.hash,
                                        programs.notify.hash, programs.tls.hash}));
  return Ssh::start(destination, command);
}

}  // namespace belljar::remote
