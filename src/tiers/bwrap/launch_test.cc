// Real launches by bubblewrap, each with one of its arguments or of init's steps taken away, and the refusal that names
// what is missing.
#include "tiers/bwrap/launch.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <ostream>

#include "tiers/jail/jail_fixture.h"

namespace belljar::tiers::bwrap {
namespace {

namespace fs = std::filesystem;
using jail::Scene;
using Words = std::vector<std::string>;

// What a case may change: the prepared launch, and the scene around it.
struct Launch {
  Scene& scene;
  Prepared prepared;

  // Takes `part` away from the words; aborts when it is not there.
  void take(const Words& part, const Words& instead = {}) {
    auto& words = prepared.arguments.words;
    const auto found = std::ranges::search(words, part);
    if (found.empty()) std::abort();
    const auto at = words.erase(found.begin(), found.end());
    words.insert(at, instead.begin(), instead.end());
  }
  void skip(uint32_t steps) { prepared.config.steps &= ~steps; }
};

struct Case {
  const char* situation;
  void (*take_away)(Launch&);
  const char* said;  // a pattern (fnmatch(3))
};

void PrintTo(const Case& test, std::ostream* out) {
  *out << test.situation;
}

std::string text_argument(const Launch& launch, const std::string& target) {
  const auto& words = launch.prepared.arguments.words;
  const auto found = std::ranges::find(words, target);
  return found == words.end() ? std::string() : *(found - 1);
}

const Case kCases[] = {
    {"Nothing", [](Launch&) {}, "proved"},
    {"NoPidNamespace",
     [](Launch& launch) {
       launch.take({"--unshare-pid"});
       launch.take({"--as-pid-1"});
     },
     "probe first-process 'getpid': expected 1, found *"},
    {"ReaperOfBubblewraps", [](Launch& launch) { launch.take({"--as-pid-1"}); },
     "probe first-process 'getpid': expected 1, found 2*"},
    {"NoNetworkNamespace",
     [](Launch& launch) {
       launch.take({"--unshare-net"});
       launch.prepared.config.proxy_port = 0;  // any: the host's may be taken
     },
     "probe namespaces 'net': expected an own namespace, found the launcher's*"},
    {"NoIpcNamespace", [](Launch& launch) { launch.take({"--unshare-ipc"}); }, "probe namespaces 'ipc': *"},
    {"NoCgroupNamespace", [](Launch& launch) { launch.take({"--unshare-cgroup"}); }, "probe namespaces 'cgroup': *"},
    {"NoUtsNamespace",
     [](Launch& launch) {
       launch.take({"--unshare-uts"});
       launch.take({"--hostname", "belljar"});
     },
     "probe namespaces 'uts': *"},
    {"AnotherUserInside",
     [](Launch& launch) {
       const std::string own = std::to_string(launch.scene.plan.identity.guest_uid);
       launch.take({"--uid", own}, {"--uid", "4711"});
     },
     "probe identity 'uid': *"},
    {"AnotherUserOutside",
     [](Launch& launch) {
       if (!launch.scene.root) {
         launch.prepared.program.identity.host_uid += 1;
         return;
       }
       // Root itself becomes bubblewrap, and finds the sources where they are.
       launch.prepared.program.privileged = false;
       const auto& sources = launch.prepared.arguments.sources;
       for (std::string& word : launch.prepared.arguments.words) {
         for (size_t i = sources.size(); i-- > 0;) {
           const std::string staged = "/tmp/" + std::to_string(i);
           if (word == staged || word.starts_with(staged + "/")) word.replace(0, staged.size(), sources[i].path);
         }
       }
     },
     "start bubblewrap '*/bwrap': the guest is not the user of the plan, refusing*"},
    {"NamespacesInside", [](Launch& launch) { launch.take({"--disable-userns"}); },
     "probe namespace-limit 'a user namespace inside': expected ENOSPC, found it was carried out*"},
    {"OutlivesItsParent", [](Launch& launch) { launch.take({"--die-with-parent"}); },
     "probe parent-death 'parent-death signal': expected 9, found 0*"},
    {"AnotherHostname", [](Launch& launch) { launch.take({"--hostname", "belljar"}, {"--hostname", "other"}); },
     "probe hostname 'hostname': expected belljar, found other*"},
    {"AnotherFolder",
     [](Launch& launch) {
       auto& words = launch.prepared.arguments.words;
       for (size_t i = 2; i < words.size(); ++i) {
         if (words[i] == launch.scene.reading() && words[i - 2] == "--ro-bind") words[i - 1] = "/srv";
       }
     },
     "probe mounts '*/reading': expected the file or folder of the plan, found another one*"},
    {"GitReplacedByALink",
     [](Launch& launch) {
       fs::rename(launch.scene.work() + "/.git", launch.scene.work() + "/was");
       fs::create_symlink("../other", launch.scene.work() + "/.git");
     },
     "*, refusing (*"},
    {"WritableSystem", [](Launch& launch) { launch.take({"--remount-ro", "/dev"}); },
     "probe mounts '/dev': expected read-only, found *"},
    {"WritableRoot", [](Launch& launch) { launch.take({"--remount-ro", "/"}); },
     "probe mounts '/': expected read-only, found *"},
    {"NoMask",
     [](Launch& launch) {
       launch.take({"--perms", "0444", "--ro-bind-data", text_argument(launch, "/etc/shadow"), "/etc/shadow"});
     },
     "probe mounts '/etc/shadow': expected a mount of its own, found none*"},
    {"GitWritable",
     [](Launch& launch) {
       const std::string git = launch.scene.work() + "/.git";
       auto& words = launch.prepared.arguments.words;
       for (size_t i = 2; i < words.size(); ++i) {
         if (words[i] == git && words[i - 2] == "--ro-bind") words[i - 2] = "--bind";
       }
     },
     "probe mounts '*/.git': expected read-only, found *"},
    {"OneMountMore",
     [](Launch& launch) { launch.take({"--remount-ro", "/"}, {"--tmpfs", "/more", "--remount-ro", "/"}); },
     "probe mounts '/more': expected no such mount, found tmpfs*"},
    {"ScratchWithoutEnd",
     [](Launch& launch) {
       const std::string share = std::to_string(launch.prepared.arguments.scratch_share);
       launch.take({"--size", share, "--tmpfs", "/tmp"}, {"--tmpfs", "/tmp"});
     },
     "probe scratch 'bytes of /tmp': *"},
    {"NoLandlock", [](Launch& launch) { launch.skip(guest::kStepLandlock); },
     "probe landlock 'create a file outside the granted trees': *"},
    {"NoFilter", [](Launch& launch) { launch.skip(guest::kStepSeccomp); }, "probe seccomp 'Seccomp': *"},
    {"KeepsPrivilege",
     [](Launch& launch) {
       launch.take({"--cap-drop", "ALL"}, {"--cap-add", "ALL"});
       launch.skip(guest::kStepCapabilities);
     },
     "probe capabilities 'Cap*': *"},
    {"WrongArgument", [](Launch& launch) { launch.take({"--unshare-ipc"}, {"--no-such-word"}); },
     "start bubblewrap '*/bwrap': bwrap: Unknown option --no-such-word, refusing (*mode = \"jail\")"},
    {"NoSuchProgram", [](Launch& launch) { launch.prepared.arguments.words[0] = "/nowhere/bwrap"; },
     "execute '/nowhere/bwrap': No such file or directory*"},
};

class BwrapLaunchTest : public ::testing::TestWithParam<Case> {};

std::string start_and_prove(Prepared& prepared) {
  const base::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  auto guest = start(prepared, {{null.get(), null.get(), null.get()}});
  if (!guest) return guest.error().message();
  const auto record = guest->prove(base::Deadline::after(std::chrono::seconds(20)));
  return record ? "proved" : record.error().message();
}

TEST_P(BwrapLaunchTest, Says) {
  const jail::TestFolder folder;
  const std::string said = jail::in_launcher([&]() -> std::string {
    Scene scene = jail::empty_scene(folder.path());
    jail::set_scene(scene, {.bwrap = true});
    auto prepared = prepare(scene.plan, jail::guest_program());
    if (!prepared) return prepared.error().message();
    prepared->config.host_namespaces = scene.prepared.config.host_namespaces;
    Launch launch{scene, std::move(*prepared)};
    GetParam().take_away(launch);
    return start_and_prove(launch.prepared);
  });
  EXPECT_EQ(::fnmatch(GetParam().said, said.c_str(), FNM_NOESCAPE), 0) << said << "\nbut wanted\n" << GetParam().said;
}

INSTANTIATE_TEST_SUITE_P(With, BwrapLaunchTest, ::testing::ValuesIn(kCases),
                         [](const auto& each) { return std::string(each.param.situation); });

}  // namespace
}  // namespace belljar::tiers::bwrap
