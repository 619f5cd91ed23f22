#include "egress/proxy.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "egress/accept_limits.h"
#include "egress/client.h"
#include "egress/member.h"
#include "egress/name_server_feed.h"
#include "egress/relay.h"
#include "egress/rule_feed.h"
#include "egress/rules.h"
#include "net/ares_resolver.h"
#include "net/caching_resolver.h"
#include "net/event_loop.h"
#include "policy/host_rule.h"

namespace belljar::egress {
namespace {}  // namespace

class Proxy::Impl final : private net::Watcher, private net::Alarm {
 public:
  Impl(std::unique_ptr<net::EventLoop> loop, base::Fd listener, Options options)
      : options_(std::move(options)),
        rules_(options_.rules),
        log_(options_.audit),
        loop_(std::move(loop)),
        listener_(std::move(listener)),
        resolver_(std::make_unique<net::CachingResolver>(options_.make_resolver ? options_.make_resolver(*loop_)
                                                                                : net::make_ares_resolver(*loop_))),
        pipes_(options_.max_pipes),
        budget_(options_.max_buffered),
        questions_(*loop_, options_.questions ? std::move(*options_.questions) : base::Fd(), rules_),
        company_(*loop_),
        context_{*loop_, *resolver_, rules_, options_, pipes_, log_, company_, questions_, budget_},
        pause_(*loop_, *this) {}

  ~Impl() override { loop_->forget(listener_.get(), *this); }

  // What may come beside connections: answers of a person, other name servers, and other rules.
  base::Status attend() {
    BELLJAR_TRY(questions_.watch());
    if (options_.name_servers) {
      name_servers_ =
          std::make_unique<NameServerFeed>(*loop_, std::move(*options_.name_servers),
                                           [this](const std::string& servers) { resolver_->change_servers(servers); });
      BELLJAR_TRY(name_servers_->watch());
    }
    if (!options_.rule_file || !options_.rule_notices) return {};
    feed_ = std::make_unique<RuleFeed>(*loop_, std::move(*options_.rule_file), std::move(*options_.rule_notices),
                                       [this](const RuleUpdate& update) { return take(update); });
    return feed_->watch();
  }
  base::Status listen() { return loop_->watch(listener_.get(), EPOLLIN, *this); }
  base::Status serve(TransparentSockets sockets) {
    transparent_.emplace(context_, std::move(sockets));
    return transparent_->watch();
  }

  base::Status run() {
    const base::Status ran = loop_->run();
    // What a connection has carried is counted when it ends.
    company_.dissolve();
    BELLJAR_TRY(ran);
    if (failure_ != 0) return base::system_error("accept4", "", failure_);
    return {};
  }
  void stop() { loop_->stop(); }
  [[nodiscard]] const Journal& log() const { return log_; }
  void prepare() {
    if (!options_.rules.empty() || feed_ || questions_.asks()) resolver_->prepare();
  }

 private:
  base::Result<UpdateOutcome> take(const RuleUpdate& update) {
    for (const policy::HostRule& rule : update.rules) {
      if (rule.deny || !options_.may_bring || options_.may_bring(rule)) continue;
      return base::refuse("take the rules", policy::to_text(rule),
                          "this session's launcher has shut itself off from that port",
                          "only a new session can reach it");
    }
    rules_.replace(update.rules);
    if (!update.name_servers.empty()) resolver_->change_servers(update.name_servers);
    return UpdateOutcome{company_.rules_changed({rules_, options_.addresses})};
  }

  void on_events(uint32_t /*events*/) override {
    for (int i = 0; i < kAcceptBurst; ++i) {
      base::Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket) {
        accept_failed(errno);
        return;
      }
      receive(std::move(socket));
    }
  }

  void receive(base::Fd socket) {
    std::optional<Destination> destination;
    if (options_.destination_of) destination = options_.destination_of(socket.get());
    if (company_.size() >= options_.max_connections) {
      Client::turn_away(context_, std::move(socket), Reason::kTooManyConnections, destination);
    } else if (destination) {
      Client::welcome_redirected(context_, std::move(socket), std::move(*destination));
    } else {
      Client::welcome(context_, std::move(socket));
    }
  }

  // accept(2) also reports errors of the new connection; those concern nobody else.
  void accept_failed(int code) {
    switch (code) {
      case EMFILE:
      case ENFILE:
      case ENOBUFS:
      case ENOMEM:
        // The listener stays readable: without a pause this would spin until a descriptor is free.
        loop_->forget(listener_.get(), *this);
        pause_.arm(kShortagePause);
        return;
      case EBADF:
      case EINVAL:
      case ENOTSOCK:
      case EOPNOTSUPP:
        failure_ = code;
        loop_->stop();
        return;
      default:
        return;
    }
  }

  void on_alarm() override {
    if (!listen()) pause_.arm(kShortagePause);
  }

  // In this order: what is below goes first, while what it refers to is still there.
  Options options_;
  Rules rules_;
  Journal log_;
  std::unique_ptr<net::EventLoop> loop_;
  base::Fd listener_;
  std::unique_ptr<net::Resolver> resolver_;
  PipePool pipes_;
  Budget budget_;
  Questions questions_;
  Company company_;
  Context context_;
  std::unique_ptr<NameServerFeed> name_servers_;
  std::unique_ptr<RuleFeed> feed_;
  net::Timer pause_;
  std::optional<TransparentWay> transparent_;
  int failure_ = 0;
};

Proxy::Proxy(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Proxy::~Proxy() = default;

base::Result<std::unique_ptr<Proxy>> Proxy::create(base::Fd listener, Options options, TransparentSockets transparent) {
  int listening = 0;
  socklen_t length = sizeof listening;
  if (::getsockopt(listener.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) != 0) {
    return base::system_error("proxy", "listener", errno);
  }
  if (listening == 0) return base::refuse("proxy", "listener", "the socket does not listen");
  const int flags = ::fcntl(listener.get(), F_GETFL);
  if (flags < 0 || ::fcntl(listener.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    return base::system_error("proxy", "listener", errno);
  }
  // Accepted sockets inherit it on Linux: one call here instead of one a connection.
  const int on = 1;
  if (::setsockopt(listener.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
    return base::system_error("proxy", "listener", errno, "the listener must be a TCP socket");
  }
  BELLJAR_ASSIGN(auto loop, net::EventLoop::create());
  auto impl = std::make_unique<Impl>(std::move(loop), std::move(listener), std::move(options));
  BELLJAR_TRY(impl->attend());
  BELLJAR_TRY(impl->listen());
  if (transparent.there()) BELLJAR_TRY(impl->serve(std::move(transparent)));
  return std::unique_ptr<Proxy>(new Proxy(std::move(impl)));
}

base::Status Proxy::run() {
  return impl_->run();
}
void Proxy::prepare() {
  impl_->prepare();
}
void Proxy::stop() {
  impl_->stop();
}
std::vector<Denial> Proxy::denials() const {
  return impl_->log().denials();
}
std::vector<Use> Proxy::uses() const {
  return impl_->log().uses();
}
uint64_t Proxy::unlisted_uses() const {
  return impl_->log().unlisted_uses();
}
uint64_t Proxy::unlisted_denials() const {
  return impl_->log().unlisted();
}

}  // namespace belljar::egress
