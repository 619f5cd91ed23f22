#include "plan/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/plan_fixture.h"

namespace belljar::plan {
namespace {

using ::testing::HasSubstr;

TEST(Environment, PassesOnlyWhatIsOnTheList) {
  Host host;
  for (const char* name : {"LD_PRELOAD",
                           "LD_LIBRARY_PATH",
                           "BASH_ENV",
                           "ENV",
                           "NODE_OPTIONS",
                           "GIT_DIR",
                           "GIT_SSH_COMMAND",
                           "PYTHONPATH",
                           "PYTHONSTARTUP",
                           "SSH_AUTH_SOCK",
                           "DBUS_SESSION_BUS_ADDRESS",
                           "GITHUB_TOKEN",
                           "AWS_SECRET_ACCESS_KEY",
                           "ANTHROPIC_API_KEY",
                           "DISPLAY",
                           "XDG_RUNTIME_DIR",
                           "PERL5OPT",
                           "RUBYOPT",
                           "ANYTHING",
                           "BELLJAR_X"}) {
    host.facts.environment[name] = "x";
  }
  for (const char* name : {"LANG", "LC_ALL", "LC_TIME", "TZ", "TERM", "COLORTERM", "NO_COLOR"}) {
    host.facts.environment[name] = "y";
  }
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  for (const EnvVar& entry : plan->env) EXPECT_NE(entry.value, "x") << entry.name;
  for (const char* name : {"LANG", "LC_ALL", "LC_TIME", "TZ", "TERM", "COLORTERM", "NO_COLOR"}) {
    ASSERT_NE(variable(*plan, name), nullptr) << name;
  }
  EXPECT_EQ(variable(*plan, "HOME")->value, "/home/alice");
  EXPECT_EQ(variable(*plan, "TMPDIR")->value, "/tmp");
  EXPECT_EQ(variable(*plan, "PWD")->value, "/home/alice/work");
  EXPECT_EQ(variable(*plan, "SHELL")->value, "/bin/bash");
  EXPECT_EQ(variable(*plan, "https_proxy")->value, "http://127.0.0.1:61080");
}

TEST(Environment, PassesWhatThePolicyNamesExactly) {
  Host host;
  host.agent();
  host.facts.environment["LD_PRELOAD"] = "/x.so";
  host.facts.environment["SSH_AUTH_SOCK"] = "/s";
  host.facts.environment["ANTHROPIC_API_KEY"] = "sk";
  host.policy.env.allow = {"LD_PRELOAD", "UNSET"};
  host.policy.env.set = {{"MY_TOKEN", "t"}, {"HOME", "/elsewhere"}, {"EMPTY", ""}};
  host.policy.agent.env = {{"MARK", "preset"}};
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(variable(*plan, "LD_PRELOAD")->value, "/x.so");
  EXPECT_EQ(variable(*plan, "SSH_AUTH_SOCK"), nullptr);
  EXPECT_TRUE(variable(*plan, "ANTHROPIC_API_KEY")->secret);
  EXPECT_TRUE(variable(*plan, "MY_TOKEN")->secret);
  EXPECT_FALSE(variable(*plan, "MARK")->secret);
  EXPECT_EQ(variable(*plan, "HOME")->value, "/elsewhere");
  EXPECT_EQ(variable(*plan, "EMPTY")->value, "");
  EXPECT_TRUE(any_contains(plan->notes, "UNSET is allowed by the policy but not set"));
}

TEST(Environment, JavaOptionsOfThePersonsOwnStandBesideTheProxy) {
  Host host;
  host.policy.env.set = {{"JAVA_TOOL_OPTIONS", "-Xmx1g"}};
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  const std::string value = variable(*plan, "JAVA_TOOL_OPTIONS")->value;
  EXPECT_TRUE(value.starts_with("-Dhttp.proxyHost=127.0.0.1 ")) << value;
  EXPECT_TRUE(value.ends_with(" -Xmx1g")) << value;
}

TEST(Environment, RefusesWhatCannotBeCarried) {
  Host host;
  host.policy.env.set = {{"A=B", "x"}};
  EXPECT_EQ(host.refusal(), "env 'A=B': a name is not empty and has no '=' or NUL, refusing");
  host.policy.env.set = {{"", "x"}};
  EXPECT_THAT(host.refusal(), HasSubstr("a name is not empty"));
  host.policy.env.set = {{"A", std::string("x\0", 2)}};
  EXPECT_EQ(host.refusal(), "env 'A': its value holds a NUL, refusing");
}

TEST(Environment, PathKeepsWhatTheGuestHas) {
  Host host;
  host.facts.environment["PATH"] =
      ":.:bin:/home/alice/bin:/usr/local/bin:/missing:/bin:/usr/bin/:/usr/bin:/home/alice/n";
  host.folder("/home/alice/bin");
  host.facts.paths["/home/alice/n"] =
      through_link(path_fact(FileKind::kFolder, "/opt/n/bin", 0), "/home/alice/n", "/opt/n/bin");
  const auto plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(variable(*plan, "PATH")->value, "/usr/local/bin:/bin:/usr/bin:/home/alice/n");
  EXPECT_EQ(mount_at(*plan, "/home/alice/n")->kind, MountKind::kLink);
  EXPECT_TRUE(any_contains(plan->notes, "left out of PATH: /home/alice/bin"));
  host.facts.environment.erase("PATH");
  const auto usual = host.plan();
  ASSERT_TRUE(usual);
  EXPECT_EQ(variable(*usual, "PATH")->value, "/usr/local/bin:/usr/bin:/bin");
}

TEST(Environment, CertificatesArePassedWhenTheGuestHasThem) {
  Host host;
  host.facts.environment["SSL_CERT_FILE"] = "/etc/ssl/certs/ca.crt";
  host.facts.environment["NODE_EXTRA_CA_CERTS"] = "/home/alice/corp.pem";
  host.file("/etc/ssl/certs/ca.crt", 0);
  host.file("/home/alice/corp.pem");
  const auto plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_NE(variable(*plan, "SSL_CERT_FILE"), nullptr);
  EXPECT_EQ(variable(*plan, "NODE_EXTRA_CA_CERTS"), nullptr);
  EXPECT_TRUE(any_contains(plan->notes, "NODE_EXTRA_CA_CERTS names '/home/alice/corp.pem'"));
}

TEST(Environment, AShellOutsideTheGuestIsReplaced) {
  Host host;
  host.facts.environment["SHELL"] = "/home/alice/.cargo/bin/nu";
  host.file("/home/alice/.cargo/bin/nu", 1000, 0755);
  const auto plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(variable(*plan, "SHELL")->value, "/bin/sh");
}

TEST(Environment, SecretsAreToldByTheirNames) {
  for (const char* name : {"GITHUB_TOKEN", "ANTHROPIC_API_KEY", "aws_secret_access_key", "DB_PASSWORD", "X_PAT",
                           "AWS_ACCESS_KEY_ID", "NPM_AUTH", "SENTRY_DSN"}) {
    EXPECT_TRUE(looks_secret(name)) << name;
  }
  for (const char* name : {"PATH", "HOME", "LANG", "TERM", "MONKEY_BUSINESS_OFF"}) EXPECT_FALSE(looks_secret(name));
}

}  // namespace
}  // namespace belljar::plan
