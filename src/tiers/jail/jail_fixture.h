// A real launch for the tests of this directory: a folder of one's own, a plan for it from the facts of this host, and
// a process of its own to launch from, since much of what is taken away or given there cannot be undone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "tiers/jail/launch.h"

namespace belljar::tiers::jail {

// What a test asks of the host beside the usual.
struct Wish {
  uid_t owner = 1234;                                 // of the work folder, in a launch by root
  std::vector<std::string> command{"sleep", "1000"};  // the first is a program of /usr/bin
  bool nested = false;                                // sandboxes are to work inside
  bool bwrap = false;                                 // a plan for bubblewrap
};

// Lives in the launcher process. As root that process has a mount namespace of its own with a tmpfs on `folder`, so
// that the id map does not depend on the file system of the machine's temporary folder.
struct Scene {
  bool root = false;   // who launches
  std::string folder;  // holds work/.git, work/.claude, the link work/.gemini, reading/inner and other/
  plan::Plan plan;
  Prepared prepared;
  bool confuse_resolver = false;  // the guest's resolver refuses even localhost

  [[nodiscard]] std::string work() const { return folder + "/work"; }
  [[nodiscard]] std::string reading() const { return folder + "/reading"; }
  // The first step for `target` (absolute) of this kind; aborts when there is none.
  Step& step(Op op, const std::string& target);
  void remove_step(Op op, const std::string& target);
  // A step of the test's own, behind the first one for `after` or at the end; its text lives as long as the program.
  void add_step(Op op, const std::string& target, const std::string& source, const std::string& after = {});
};

// A folder under the temporary folder, made for one test and removed with what is in it.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Fills `scene.folder`, plans and prepares. What goes wrong is a fault of the test's surroundings and aborts.
void set_scene(Scene& scene, const Wish& wish);

// The scene before set_scene(), in the launcher process: as root with the mount namespace.
[[nodiscard]] Scene empty_scene(const std::string& folder);

// The plan of the scene, not yet prepared.
[[nodiscard]] base::Result<plan::Plan> plan_for(const Scene& scene, const Wish& wish);

// What `body` returns, run in a forked process; "launcher: signal 9" and the like when that process dies.
[[nodiscard]] std::string in_launcher(const std::function<std::string()>& body);

// Guest::prove() with somebody who answers the probe's question to the resolver, with a refusal when `refuse`.
[[nodiscard]] base::Result<guest::ProbeRecord> prove(Guest& guest, bool refuse = false);

// start() and prove() with the null device for 0, 1 and 2: "proved", or the message of the error.
[[nodiscard]] std::string launch(Scene& scene);

[[nodiscard]] const char* guest_program();

}  // namespace belljar::tiers::jail
