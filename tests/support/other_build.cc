// Runs the test program of the same name that another build folder has, on the belljar of this one: it starts programs
// and looks at what they do, so how it was compiled itself changes nothing.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

int main(int argc, char** argv) {
  const std::string itself = argc > 0 ? argv[0] : "";
  const std::string program = std::string(BELLJAR_TEST_PROGRAMS) + "/" + itself.substr(itself.rfind('/') + 1);
  ::setenv("BELLJAR", BELLJAR_PROGRAM, 0);
  ::execv(program.c_str(), argv);
  std::fprintf(stderr, "run '%s': %s (build that folder first)\n", program.c_str(), std::strerror(errno));
  return 1;
}
