// One connection of the guest, from its first byte until it is a tunnel or over.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "egress/denial.h"
#include "egress/dialer.h"
#include "egress/forward.h"
#include "egress/forward_head.h"
#include "egress/member.h"
#include "egress/options.h"
#include "egress/relay.h"
#include "egress/rules.h"
#include "net/event_loop.h"
#include "net/http_head.h"
#include "net/http_target.h"
#include "net/resolver.h"
#include "net/stream.h"
#include "net/tls_hello.h"

namespace belljar::egress {

// What all connections of one proxy share. Outlives them.
struct Context {
  net::EventLoop& loop;
  net::Resolver& resolver;
  const Rules& rules;
  const Options& options;
  PipePool& pipes;
  DenialLog& log;
  Company& company;
};

class Client final : public Member,
                     private net::StreamOwner,
                     private net::Alarm,
                     private DialOwner,
                     private ForwardOwner {
 public:
  // Takes an accepted, non-blocking socket and joins the company.
  static void welcome(Context& context, base::Fd socket);
  // The same for a client beyond the cap: it gets its refusal and nothing else.
  static void turn_away(Context& context, base::Fd socket, Reason reason);

 private:
  enum class Phase : uint8_t {
    kHead,     // reading a request head
    kDial,     // resolving and connecting
    kGreet,    // sending the 200
    kHello,    // reading the TLS hello
    kDeliver,  // sending on what came before the tunnel: the hello, or what followed an upgrade
    kForward,  // relaying one plain HTTP exchange
    kLast,     // sending the last bytes the client gets
    kLinger,   // waiting for the client to close, so that no reset destroys those bytes
  };

  explicit Client(Context& context) : Member(context.company), context_(context), timer_(context.loop, *this) {}

  void on_stream(net::Stream& stream) override;
  void on_alarm() override;
  void on_dialed(std::unique_ptr<net::Stream> stream) override;
  void on_dial_failed(const DialFailure& failure) override;
  void on_forward_done(bool keep_alive) override;
  void on_forward_refused(Reason reason, std::string detail, int status) override;
  void on_forward_broken() override;
  void on_forward_upgraded(std::unique_ptr<net::Stream> upstream, std::string to_client) override;

  void step();
  // Each returns true when the next phase can go on at once.
  bool read_head();
  bool send_greeting();
  bool read_hello();
  bool deliver();
  bool send_last();
  void drain();

  // Appends what the client has sent, up to one chunk.
  net::Stream::Outcome read_more();
  // Sends from the front of `text`. False when the stream takes no more now or is broken (then this has left).
  bool send_all(net::Stream& stream, std::string& text);

  void take_request(std::string head);
  void take_connect(const net::RequestHead& head);
  void take_plain(const net::RequestHead& head);
  [[nodiscard]] bool take_authority(const net::Authority& authority, uint16_t default_port,
                                    const net::RequestHead& head);
  void judge_and_dial();
  [[nodiscard]] net::HttpResult<void> check_host_field(const net::RequestHead& head, uint16_t default_port) const;
  bool judge_hello(net::HelloVerdict verdict);
  void become_tunnel();

  Denial denial(Reason reason, std::string detail) const;
  void refuse(Denial denial);  // by an HTTP response
  void refuse_malformed(const net::HttpProblem& problem);
  void refuse_with_status(Denial denial, int status);
  void refuse_hello(Reason reason, std::string detail);  // inside a tunnel that was already granted
  void finish(std::string last_bytes);

  Context& context_;
  std::unique_ptr<net::Stream> client_;
  net::Timer timer_;
  Phase phase_ = Phase::kHead;
  std::string in_;   // of the client, not yet used
  std::string out_;  // for the client
  net::HeadScanner scanner_;
  size_t lingered_ = 0;

  // Of the request at hand.
  bool json_ = false;
  std::string host_;  // canonical
  uint16_t port_ = 0;
  const policy::HostRule* rule_ = nullptr;
  std::optional<Dialer> dialer_;
  std::unique_ptr<net::Stream> upstream_;
  net::HelloReader hello_;
  size_t hello_fed_ = 0;
  bool idle_ = false;          // kept alive, no byte of the next request yet
  ForwardRequest request_;     // of plain HTTP
  std::string upstream_head_;  // likewise; empty for CONNECT
  std::unique_ptr<Forward> forward_;
};

}  // namespace belljar::egress
