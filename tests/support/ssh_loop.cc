#include "support/ssh_loop.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/belljar.h"

namespace belljar::testing {
namespace {

void write_program(const std::string& path, const std::string& script) {
  write_file(path, "#!/bin/sh\n" + script);
  ::chmod(path.c_str(), 0755);
}

// sshd wants a folder of its own in /run, which a machine without a running one need not have. $BELLJAR_TEST_USR is
// where a host of another shape has what is in /usr elsewhere; its sshd would have its own notion of PATH.
std::string serve(const std::string& folder) {
  const std::string sshd =
      "set -- \"HOME=$HOME\"; for v in XDG_STATE_HOME XDG_CACHE_HOME XDG_CONFIG_HOME; do eval \"x=\\${$v-}\"; "
      "[ -z \"$x\" ] || set -- \"$@\" \"$v=$x\"; done; [ -z \"${BELLJAR_TEST_USR-}\" ] || set -- \"$@\" "
      "\"PATH=$PATH\"; "
      "exec \"${BELLJAR_TEST_USR:-/usr}/sbin/sshd\" -i -f " +
      folder + "/sshd_config -o \"SetEnv $*\"";
  if (::geteuid() != 0) return sshd + "\n";
  write_program(
      folder + "/bin/sshd-here",
      "[ -d /run/sshd ] || { mount -t tmpfs -o mode=755 none /run && mkdir /run/sshd; } || exit\n" + sshd + "\n");
  return "exec unshare -m --propagation slave " + folder + "/bin/sshd-here\n";
}

}  // namespace

SshLoop::SshLoop() {
  const std::string& folder = folder_.path();
  ::chmod(folder.c_str(), 0755);
  must_run(
      {.argv = {"sh", "-ec",
                "mkdir bin programs; ssh-keygen -q -t ed25519 -N '' -f host; ssh-keygen -q -t ed25519 -N '' -f key; "
                "cp key.pub authorized; echo \"loop $(cut -d ' ' -f 1,2 host.pub)\" >known_hosts"},
       .cwd = folder});
  const std::string account = ::getpwuid(::geteuid())->pw_name;
  write_file(folder + "/sshd_config", "HostKey " + folder + "/host\nAuthorizedKeysFile " + folder +
                                          "/authorized\nUsePAM no\nStrictModes no\nPidFile none\nPermitRootLogin yes\n"
                                          "LogLevel ERROR\n");
  write_file(folder + "/ssh_config", "Host there\n  User " + account + "\n  IdentityFile " + folder +
                                         "/key\n  UserKnownHostsFile " + folder +
                                         "/known_hosts\n  HostKeyAlias loop\n  StrictHostKeyChecking yes\n"
                                         "  LogLevel ERROR\n  ProxyCommand " +
                                         folder + "/bin/serve\n");
  write_program(folder + "/bin/ssh",
                "exec \"${BELLJAR_TEST_USR:-/usr}/bin/ssh\" -F " + folder + "/ssh_config \"$@\"\n");
  write_program(folder + "/bin/serve", serve(folder));
  const std::string built = belljar_program().substr(0, belljar_program().rfind('/') + 1);
  for (const char* name : {"belljar", "belljar-guest", "belljar-notify", "belljar-tls"}) {
    must_run({.argv = {"strip", "-o", folder + "/programs/" + name, built + name}});
  }
}

}  // namespace belljar::testing
