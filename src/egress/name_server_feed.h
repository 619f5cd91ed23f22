// Other name servers that come while the proxy runs, from a process that can still read the host's resolv.conf.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/fd.h"
#include "net/event_loop.h"

namespace belljar::egress {

inline constexpr size_t kMostNameServers = 4096;

// One list a message, as net::AresOptions::servers; a longer one is cut by the kernel and dropped. Empty ones are, too.
class NameServerFeed final : private net::Watcher {
 public:
  using Take = std::function<void(const std::string& servers)>;

  // `socket` is a SOCK_SEQPACKET; its hang-up is the end of news.
  NameServerFeed(net::EventLoop& loop, base::Fd socket, Take take)
      : loop_(loop), socket_(std::move(socket)), take_(std::move(take)) {}
  ~NameServerFeed() override { hang_up(); }
  [[nodiscard]] base::Status watch() { return loop_.watch(socket_.get(), EPOLLIN, *this); }

 private:
  void on_events(uint32_t events) override;
  void hang_up();

  net::EventLoop& loop_;
  base::Fd socket_;
  Take take_;
};

}  // namespace belljar::egress
