#include "net/ares_resolver.h"

#include <ares.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "net/hosts_file.h"

namespace belljar::net {
namespace {

class AresResolver final : public Resolver, public Alarm {
 public:
  AresResolver(EventLoop& loop, AresOptions options) : loop_(loop), options_(std::move(options)), timer_(loop, *this) {}

  ~AresResolver() override {
    pending_.clear();  // the callbacks that ares_destroy() makes then find nobody to tell
    if (channel_ != nullptr) ares_destroy(channel_);
  }

  Id resolve(const std::string& host, Callback done) override {
    const Id id = ++last_id_;
    Query& query = pending_[id];
    query.done = std::move(done);
    prepare();
    if (hosts_) query.early.addresses = hosts_->find(host);
    if (!query.early.addresses.empty()) {
      query.answered_early = true;
      query.early.status = ResolveStatus::kOk;
    } else if (!open_channel()) {
      query.failed_early = true;
    } else {
      query.host = host;
      ask(id, host);
    }
    arm();
    return id;
  }

  void prepare() override {
    if (options_.hosts_file && !hosts_) hosts_.emplace();
    (void)open_channel();
  }

  // A list that is none changes nothing.
  void change_servers(const std::string& servers) override {
    options_.servers = servers;
    if (channel_ == nullptr) return;
    // c-ares refuses while questions are under way. Those to servers that are gone would be so for a long time.
    moving_ = true;
    ares_cancel(channel_);
    moving_ = false;
    (void)ares_set_servers_ports_csv(channel_, servers.c_str());
    std::vector<std::pair<Id, std::string>> open;
    for (const auto& [id, query] : pending_) {
      if (!query.answered_early && !query.failed_early) open.emplace_back(id, query.host);
    }
    for (const auto& [id, host] : open) ask(id, host);
    arm();
  }

  void cancel(Id id) override { pending_.erase(id); }

  void on_alarm() override {
    deliver_early();
    if (channel_ != nullptr) ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    arm();
  }

 private:
  struct Ticket {
    AresResolver* resolver;
    Id id;
  };
  struct Query {
    Callback done;
    std::string host;
    bool failed_early = false;
    bool answered_early = false;
    Resolution early;
  };
  // One socket of c-ares.
  struct Socket final : Watcher {
    Socket(AresResolver& resolver, ares_socket_t socket) : owner(resolver), fd(socket) {}
    void on_events(uint32_t events) override {
      AresResolver& resolver = owner;  // this may be gone after the call
      const ares_socket_t socket = fd;
      const bool in = (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0;
      const bool out = (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0;
      ares_process_fd(resolver.channel_, in ? socket : ARES_SOCKET_BAD, out ? socket : ARES_SOCKET_BAD);
      resolver.arm();
    }
    AresResolver& owner;
    ares_socket_t fd;
  };

  // Not answered before this returns, but told by `arm()` then.
  void ask(Id id, const std::string& host) {
    inside_resolve_ = id;
    ares_addrinfo_hints hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;  // one node an address
    hints.ai_flags = ARES_AI_NOSORT;  // sorting opens a socket to each address to learn its source address
    ares_getaddrinfo(channel_, host.c_str(), nullptr, &hints, &AresResolver::answered, new Ticket{this, id});
    inside_resolve_ = 0;
  }

  bool open_channel() {
    if (channel_ != nullptr) return true;
    ares_options options{};
    // The hosts file is read here: c-ares would open it anew for each lookup.
    std::array<char, 2> dns_only = {'b', '\0'};
    // No search list and no dots needed: the name is looked up as it stands or not at all, whatever resolv.conf says.
    options.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES;
    options.ndots = 0;
    options.timeout = options_.first_timeout_ms;
    options.tries = options_.tries;
    options.lookups = dns_only.data();
    options.sock_state_cb = &AresResolver::socket_state;
    options.sock_state_cb_data = this;
    const int mask = ARES_OPT_FLAGS | ARES_OPT_NDOTS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
                     ARES_OPT_SOCK_STATE_CB | ARES_OPT_DOMAINS;
    if (ares_init_options(&channel_, &options, mask) != ARES_SUCCESS) {
      channel_ = nullptr;
      return false;
    }
    if (!options_.servers.empty() && ares_set_servers_ports_csv(channel_, options_.servers.c_str()) != ARES_SUCCESS) {
      ares_destroy(std::exchange(channel_, nullptr));
      return false;
    }
    return true;
  }

  static void socket_state(void* data, ares_socket_t fd, int readable, int writable) {
    auto* self = static_cast<AresResolver*>(data);
    const auto found = self->sockets_.find(fd);
    if (readable == 0 && writable == 0) {
      if (found == self->sockets_.end()) return;
      self->loop_.forget(fd, *found->second);
      self->sockets_.erase(found);
      return;
    }
    const uint32_t events = (readable != 0 ? uint32_t{EPOLLIN} : 0U) | (writable != 0 ? uint32_t{EPOLLOUT} : 0U);
    if (found != self->sockets_.end()) {
      // A failure only delays the lookup to its timeout.
      static_cast<void>(self->loop_.change(fd, events, *found->second));
      return;
    }
    auto socket = std::make_unique<Socket>(*self, fd);
    if (self->loop_.watch(fd, events, *socket)) self->sockets_.emplace(fd, std::move(socket));
  }

  static void answered(void* data, int status, int /*timeouts*/, ares_addrinfo* result) {
    const std::unique_ptr<Ticket> ticket(static_cast<Ticket*>(data));
    const std::unique_ptr<ares_addrinfo, decltype(&ares_freeaddrinfo)> owned(result, &ares_freeaddrinfo);
    if (status == ARES_EDESTRUCTION) return;
    ticket->resolver->take(ticket->id, status, result);
  }

  void take(Id id, int status, const ares_addrinfo* result) {
    const auto found = pending_.find(id);
    if (found == pending_.end() || moving_) return;  // cancelled, or about to be asked again
    Resolution resolution = translate(status, result);
    if (inside_resolve_ == id) {  // answered without a question (localhost) before ares_getaddrinfo() returned
      found->second.answered_early = true;
      found->second.early = std::move(resolution);
      return;
    }
    const Callback done = std::move(found->second.done);
    pending_.erase(found);
    done(resolution);
  }

  static std::string host_text(std::string_view name) {
    if (name.ends_with('.')) name.remove_suffix(1);
    std::string out(name);
    std::ranges::transform(out, out.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return out;
  }

  static Resolution translate(int status, const ares_addrinfo* result) {
    Resolution out;
    if (status == ARES_SUCCESS && result != nullptr) {
      for (const ares_addrinfo_node* node = result->nodes; node != nullptr; node = node->ai_next) {
        const auto address = IpAddress::from(node->ai_addr);
        if (address && std::find(out.addresses.begin(), out.addresses.end(), *address) == out.addresses.end()) {
          out.addresses.push_back(*address);
        }
      }
    }
    for (const ares_addrinfo_cname* link = result != nullptr ? result->cnames : nullptr; link != nullptr;
         link = link->next) {
      if (link->name != nullptr) out.aliases.push_back(host_text(link->name));
    }
    if (result != nullptr && !out.addresses.empty()) {
      out.status = ResolveStatus::kOk;
      out.ttl = shortest_ttl(*result);
      return out;
    }
    switch (status) {
      case ARES_SUCCESS:
      case ARES_ENODATA:
      case ARES_ENOTFOUND:
        out.status = ResolveStatus::kNotFound;
        out.detail = "no such host";
        break;
      case ARES_ETIMEOUT:
        out.status = ResolveStatus::kTimeout;
        out.detail = "no name server answered in time";
        break;
      case ARES_ECONNREFUSED:  // also what c-ares says when each server answered SERVFAIL or REFUSED
        out.detail = "every name server failed or could not be reached";
        break;
      default:
        out.detail = ares_strerror(status);
        break;
    }
    return out;
  }

  // An answer of /etc/hosts has 0: the file is read anew each time.
  static std::chrono::seconds shortest_ttl(const ares_addrinfo& result) {
    int ttl = result.nodes != nullptr ? result.nodes->ai_ttl : 0;
    for (const ares_addrinfo_node* node = result.nodes; node != nullptr; node = node->ai_next) {
      ttl = std::min(ttl, node->ai_ttl);
    }
    for (const ares_addrinfo_cname* link = result.cnames; link != nullptr; link = link->next) {
      ttl = std::min(ttl, link->ttl);
    }
    return std::chrono::seconds(std::max(ttl, 0));
  }

  void deliver_early() {
    std::vector<Id> ready;
    for (const auto& [id, query] : pending_) {
      if (query.answered_early || query.failed_early) ready.push_back(id);
    }
    for (const Id id : ready) {
      const auto found = pending_.find(id);
      if (found == pending_.end()) continue;  // cancelled by a callback just made
      const Query query = std::move(found->second);
      pending_.erase(found);
      query.done(query.answered_early ? query.early : Resolution{ResolveStatus::kFailed, "no resolver", {}, {}});
    }
  }

  void arm() {
    const bool early = std::any_of(pending_.begin(), pending_.end(), [](const auto& entry) {
      return entry.second.answered_early || entry.second.failed_early;
    });
    timeval left{};
    if (early) {
      timer_.arm(std::chrono::nanoseconds(0));
    } else if (channel_ != nullptr && ares_timeout(channel_, nullptr, &left) != nullptr) {
      timer_.arm(std::chrono::seconds(left.tv_sec) + std::chrono::microseconds(left.tv_usec));
    } else {
      timer_.disarm();
    }
  }

  EventLoop& loop_;
  AresOptions options_;
  Timer timer_;
  ares_channel channel_ = nullptr;
  bool moving_ = false;  // questions are taken back, to be put to other servers
  std::optional<HostsFile> hosts_;
  Id last_id_ = 0;
  Id inside_resolve_ = 0;
  std::unordered_map<Id, Query> pending_;
  std::map<ares_socket_t, std::unique_ptr<Socket>> sockets_;
};

}  // namespace

std::unique_ptr<Resolver> make_ares_resolver(EventLoop& loop, AresOptions options) {
  return std::make_unique<AresResolver>(loop, std::move(options));
}

}  // namespace belljar::net
