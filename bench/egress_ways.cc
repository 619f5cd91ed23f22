#include "egress_ways.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>
#include <utility>

#include "egress/proxy.h"
#include "net/ares_resolver.h"
#include "policy/host_rule.h"

namespace belljar::bench {
namespace {

constexpr const char* kHost = "bench.example";
constexpr const char* kInternet = testing::TestHosts::kInternet;
constexpr const char* kGate = "10.91.0.1";  // the host, seen from the guest: for proxies that listen on their own
constexpr uint16_t kDnsPort = 5300;

void must(bool done, const char* what) {
  if (done) return;
  std::perror(what);
  std::exit(1);
}

base::Fd net_of(const std::string& pid) {
  base::Fd fd(::open(("/proc/" + pid + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC));
  must(fd.valid(), "open network namespace");
  return fd;
}

bool in_path(const std::string& program) {
  for (const char* folder : {"/usr/sbin/", "/usr/bin/", "/usr/local/bin/"}) {
    if (::access((folder + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

base::Fd bound_socket(int type, const char* address, uint16_t port) {
  base::Fd fd(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  ::inet_pton(AF_INET, address, &to.sin_addr);
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  must(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0, "bind");
  if (type == SOCK_STREAM) must(::listen(fd.get(), 8192) == 0, "listen");
  return fd;
}

// Answers each A question with the internet's address and a TTL of a minute, all else with nothing.
void serve_dns(const base::Fd& socket) {
  std::array<char, 512> packet;
  for (;;) {
    sockaddr_in from{};
    socklen_t length = sizeof from;
    const ssize_t n =
        ::recvfrom(socket.get(), packet.data(), packet.size(), 0, reinterpret_cast<sockaddr*>(&from), &length);
    if (n < 17) continue;
    // The question ends with its name's empty label, type and class (RFC 1035, section 4.1.2).
    const std::string text(packet.data(), static_cast<size_t>(n));
    const size_t end = text.find('\0', 12) + 5;
    if (end > text.size()) continue;
    const bool a = text[end - 3] == 1;
    std::string answer = text.substr(0, end);
    const std::array<char, 10> header{
        static_cast<char>(0x81), static_cast<char>(0x80), 0, 1, 0, static_cast<char>(a), 0, 0, 0, 0};
    answer.replace(2, header.size(), header.data(), header.size());
    if (a) {
      const std::array<char, 12> record{static_cast<char>(0xc0), 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4};
      answer.append(record.data(), record.size());
      in_addr address{};
      ::inet_pton(AF_INET, kInternet, &address);
      answer.append(reinterpret_cast<const char*>(&address), sizeof address);
    }
    ::sendto(socket.get(), answer.data(), answer.size(), 0, reinterpret_cast<const sockaddr*>(&from), length);
  }
}

// Accepts, says as much as a TLS server would at first (the beginning of an alert: no second hello will do), and then
// nothing; closes what the other side has left.
void hold_connections(const base::Fd& listener) {
  const base::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = listener.get();
  ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, listener.get(), &event);
  while (::epoll_wait(epoll.get(), &event, 1, -1) >= 0) {
    if (event.data.fd != listener.get()) {
      ::close(event.data.fd);
      continue;
    }
    const int fd = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC);
    event.events = EPOLLRDHUP;
    event.data.fd = fd;
    if (fd < 0) continue;
    [[maybe_unused]] const ssize_t n = ::send(fd, "\x15", 1, MSG_NOSIGNAL);
    ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event);
  }
}

std::vector<pid_t> family_of(pid_t root) {
  std::map<pid_t, std::vector<pid_t>> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string stat((std::istreambuf_iterator<char>(file)), {});
    const size_t after = stat.rfind(')');
    if (after == std::string::npos) continue;
    std::istringstream rest(stat.substr(after + 2));
    std::string state;
    pid_t parent = 0;
    rest >> state >> parent;
    children[parent].push_back(std::atoi(name.c_str()));
  }
  std::vector<pid_t> out{root};
  for (size_t i = 0; i < out.size(); ++i) {
    const std::vector<pid_t> more = children[out[i]];
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

}  // namespace

double cpu_seconds(pid_t pid) {
  double ticks = 0;
  for (const pid_t each : family_of(pid)) {
    std::ifstream file("/proc/" + std::to_string(each) + "/stat");
    std::string stat((std::istreambuf_iterator<char>(file)), {});
    std::istringstream rest(stat.substr(std::min(stat.rfind(')') + 2, stat.size())));
    std::string word;
    // utime and stime are fields 14 and 15; the state after the name is field 3 (proc(5)).
    for (int field = 3; field <= 15 && rest >> word; ++field) {
      if (field >= 14) ticks += std::atof(word.c_str());
    }
  }
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double private_bytes(pid_t pid) {
  double kib = 0;
  for (const pid_t each : family_of(pid)) {
    std::ifstream file("/proc/" + std::to_string(each) + "/smaps_rollup");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("Private_Dirty:")) kib += std::atof(line.c_str() + 14);
    }
  }
  return kib * 1024;
}

World::World(size_t file_size) : hosts_({kHost}) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  host_net_ = net_of("self");
  make_guest();
  testing::write_file(temp_ / "www/index.html", "ok\n");
  testing::must_run({.argv = {"truncate", "-s", std::to_string(file_size), temp_ / "www/big"}});
  serve();
  ways_.push_back({"direct loopback", {"127.0.0.1", 0, false}, false, -1});
  add_ours();
  add_bare(1);
  add_bare(2);
  add_haproxy();
  add_tinyproxy();
  add_squid();
  ways_.push_back({"srt", {}, true, -1, in_path("srt") ? "not driven by this benchmark" : "not installed"});
  std::this_thread::sleep_for(std::chrono::seconds(1));
}

World::~World() {
  for (const pid_t child : children_) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
}

void World::make_guest() {
  guest_.emplace(testing::Command{.argv = {"sh", "-c", "echo ready; exec sleep infinity"},
                                  .before_exec = [] { return ::unshare(CLONE_NEWNET) == 0; }});
  must(guest_->read_line().has_value(), "the guest");
  const std::string pid = std::to_string(guest_->pid());
  guest_net_ = net_of(pid);
  testing::must_run({.argv = {"ip", "-batch", "-"},
                     .in = testing::Stream::pipe("link add gate type veth peer name wire netns " + pid +
                                                 "\naddress add 10.91.0.1/24 dev gate\nlink set gate up\n")});
  testing::must_run(
      {.argv = {"nsenter", "--net=/proc/" + pid + "/ns/net", "ip", "-batch", "-"},
       .in = testing::Stream::pipe("link set lo up\naddress add 10.91.0.2/24 dev wire\nlink set wire up\n")});
}

pid_t World::fork_child(const std::function<void()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    ::_exit(0);
  }
  children_.push_back(pid);
  return pid;
}

void World::serve() {
  testing::write_file(temp_ / "nginx.conf",
                      "load_module /usr/lib/nginx/modules/ngx_stream_module.so;\ndaemon off;\n"
                      // One process: a worker would outlive its killed master.
                      "master_process off;\n"
                      "pid " +
                          temp_ / "nginx.pid" +
                          ";\nerror_log /dev/null crit;\n"
                          "events { worker_connections 8192; }\n"
                          "http { access_log off; sendfile on; tcp_nopush on; client_body_temp_path " +
                          temp_ / "b" + "; proxy_temp_path " + temp_ / "p" + "; fastcgi_temp_path " + temp_ / "f" +
                          "; uwsgi_temp_path " + temp_ / "u" + "; scgi_temp_path " + temp_ / "s" +
                          "; server { listen 80 backlog=8192; root " + temp_ / "www" +
                          "; } }\n"
                          "stream { server { listen 8443 backlog=8192; ssl_preread on; return \"ok\\n\"; } }\n");
  ::chmod(temp_.path().c_str(), 0755);
  daemons_.push_back(hosts_.start({.argv = {"/usr/sbin/nginx", "-c", temp_ / "nginx.conf", "-e", "/dev/null"},
                                   .out = testing::Stream::null(),
                                   .err = testing::Stream::null()}));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  internet_net_ = net_of(std::to_string(daemons_.back().pid()));
  for (const base::Fd* net : {&internet_net_, &guest_net_, &host_net_}) {
    must(::setns(net->get(), CLONE_NEWNET) == 0, "setns");
    std::ofstream("/proc/sys/net/ipv4/ip_local_port_range") << "1024 65000";
    std::ofstream("/proc/sys/net/core/somaxconn") << "8192";
    std::ofstream("/proc/sys/net/ipv4/tcp_max_syn_backlog") << "8192";
  }
  fork_child([this] {
    must(::setns(internet_net_.get(), CLONE_NEWNET) == 0, "setns");
    hold_connections(bound_socket(SOCK_STREAM, "0.0.0.0", kHoldService));
  });
}

base::Fd World::listen_in_guest(uint16_t& port) const {
  static uint16_t next = 700;
  port = next++;
  must(::setns(guest_net_.get(), CLONE_NEWNET) == 0, "setns");
  base::Fd listener = bound_socket(SOCK_STREAM, "127.0.0.1", port);
  must(::setns(host_net_.get(), CLONE_NEWNET) == 0, "setns");
  return listener;
}

// As a session runs it, except for a resolver of the benchmark's own and a cap that lets 5,000 tunnels in.
void World::add_ours() {
  base::Fd dns = bound_socket(SOCK_DGRAM, "127.0.0.1", kDnsPort);
  fork_child([&] { serve_dns(dns); });
  uint16_t port = 0;
  base::Fd listener = listen_in_guest(port);
  const pid_t pid = fork_child([&] {
    egress::Options options;
    for (const uint16_t service : {kFileService, kHelloService, kHoldService}) {
      auto rule = policy::parse_host_rule(std::string(kHost) + ":" + std::to_string(service), "bench");
      rule->tls = service == kFileService ? policy::Tls::kAny : policy::Tls::kTunnels;
      options.rules.push_back(std::move(*rule));
    }
    options.max_connections = 8192;
    options.make_resolver = [](net::EventLoop& loop) {
      return net::make_ares_resolver(loop, {.servers = "127.0.0.1:" + std::to_string(kDnsPort), .hosts_file = false});
    };
    auto proxy = egress::Proxy::create(std::move(listener), std::move(options));
    if (proxy) static_cast<void>((*proxy)->run());
  });
  ways_.push_back({"belljar", {"127.0.0.1", port, true}, true, pid});
}

// With two loops it shows what a proxy of one loop leaves unused (docs/adr/0009).
void World::add_bare(int loops) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "bare-relay";
  uint16_t port = 0;
  const base::Fd listener = listen_in_guest(port);
  const pid_t pid = fork_child([&] {
    ::dup2(listener.get(), 3);
    for (int more = 1; more < loops && ::fork() != 0; ++more) {
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::execl(program.c_str(), program.c_str(), kInternet, nullptr);
  });
  ways_.push_back({loops > 1 ? "bare relay, two loops" : "bare relay", {"127.0.0.1", port, true}, true, pid});
}

bool World::add_daemon(const std::string& name, const std::vector<std::string>& argv, Door door) {
  if (!in_path(argv.front())) {
    ways_.push_back({name, std::move(door), true, -1, "not installed"});
    return false;
  }
  daemons_.emplace_back(
      testing::Command{.argv = argv, .out = testing::Stream::null(), .err = testing::Stream::from(STDERR_FILENO)});
  ways_.push_back({name, std::move(door), true, daemons_.back().pid()});
  return true;
}

void World::add_haproxy() {
  std::string text =
      "global\n maxconn 6000\ndefaults\n mode tcp\n option splice-auto\n timeout connect 10s\n timeout client 1h\n "
      "timeout server 1h\n";
  for (const uint16_t service : {kFileService, kHelloService, kHoldService}) {
    const std::string number = std::to_string(service);
    text += "listen s" + number + "\n bind " + std::string(kGate) + ":" + number + "\n server i " + kInternet + ":" +
            number + "\n";
  }
  testing::write_file(temp_ / "haproxy.cfg", text);
  add_daemon("haproxy (TCP)", {"haproxy", "-db", "-f", temp_ / "haproxy.cfg"}, {kGate, 0, false});
}

void World::add_tinyproxy() {
  testing::write_file(temp_ / "tinyproxy.conf", "Port 8888\nListen " + std::string(kGate) +
                                                    "\nMaxClients 8000\nTimeout 3600\nLogLevel Critical\nLogFile \"" +
                                                    temp_ / "tinyproxy.log" + "\"\n");
  add_daemon("tinyproxy", {"tinyproxy", "-d", "-c", temp_ / "tinyproxy.conf"}, {kGate, 8888, true});
}

void World::add_squid() {
  testing::write_file(temp_ / "squid.conf",
                      "http_port " + std::string(kGate) +
                          ":3128\nhttp_access allow all\ncache deny all\naccess_log none\ncache_log /dev/null\n"
                          "pid_filename none\nmax_filedescriptors 16384\nmemory_pools off\ncoredump_dir " +
                          temp_.path() +
                          "\nshutdown_lifetime 0 seconds\nicp_port 0\npinger_enable off\nvisible_hostname bench\n");
  add_daemon("squid", {"squid", "-N", "-f", temp_ / "squid.conf"}, {kGate, 3128, true});
}

std::vector<double> World::run(const Way& way, const std::function<std::vector<double>()>& work) const {
  std::vector<double> numbers;
  run_and_stay(way, work, numbers);
  return numbers;
}

base::Fd World::run_and_stay(const Way& way, const std::function<std::vector<double>()>& work,
                             std::vector<double>& numbers) const {
  std::array<int, 2> results{};
  std::array<int, 2> leash{};
  must(::pipe2(results.data(), O_CLOEXEC) == 0 && ::pipe2(leash.data(), O_CLOEXEC) == 0, "pipe2");
  const pid_t middle = ::fork();
  if (middle == 0) {
    if (::fork() != 0) ::_exit(0);  // the worker is init's child: nobody here has to wait for it
    ::close(leash[1]);
    must(::setns(way.in_guest ? guest_net_.get() : internet_net_.get(), CLONE_NEWNET) == 0, "setns");
    const std::vector<double> made = work();
    [[maybe_unused]] ssize_t n = ::write(results[1], made.data(), made.size() * sizeof(double));
    ::close(results[1]);
    char byte = 0;
    n = ::read(leash[0], &byte, 1);
    ::_exit(0);
  }
  ::waitpid(middle, nullptr, 0);
  ::close(results[1]);
  ::close(leash[0]);
  double number = 0;
  while (::read(results[0], &number, sizeof number) == sizeof number) numbers.push_back(number);
  ::close(results[0]);
  return base::Fd(leash[1]);
}

}  // namespace belljar::bench
