// One connection of the guest, from its first byte until it is a tunnel or over.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "egress/budget.h"
#include "egress/denial.h"
#include "egress/dialer.h"
#include "egress/forward.h"
#include "egress/forward_head.h"
#include "egress/journal.h"
#include "egress/member.h"
#include "egress/options.h"
#include "egress/questions.h"
#include "egress/relay.h"
#include "egress/rules.h"
#include "net/event_loop.h"
#include "net/http_head.h"
#include "net/http_target.h"
#include "net/resolver.h"
#include "net/socks.h"
#include "net/stream.h"
#include "net/tls_answer.h"
#include "net/tls_hello.h"

namespace belljar::egress {

// What all connections of one proxy share. Outlives them.
struct Context {
  net::EventLoop& loop;
  net::Resolver& resolver;
  const Rules& rules;
  const Options& options;
  PipePool& pipes;
  Journal& log;
  Company& company;
  Questions& questions;
  Budget& budget;
};

// Of what comes before a client is judged, or while it is.
inline constexpr size_t kReadAtOnce = size_t{4} << 10U;

class Client final : public Member,
                     private net::StreamOwner,
                     private net::Alarm,
                     private DialOwner,
                     private AskOwner,
                     private ForwardOwner {
 public:
  // Takes an accepted, non-blocking socket and joins the company.
  static void welcome(Context& context, base::Fd socket);
  // The same for one that the kernel redirected: judged as if it had asked for `destination` by CONNECT, but it takes
  // us for that host, so it is answered nothing that is not that host's, except in HTTP.
  static void welcome_redirected(Context& context, base::Fd socket, Destination destination);
  // The same for a client beyond the cap: it gets its refusal and nothing else.
  static void turn_away(Context& context, base::Fd socket, Reason reason,
                        const std::optional<Destination>& destination);

  ~Client() override;

 private:
  enum class Phase : uint8_t {
    kHead,     // reading a request head
    kSocks,    // reading the two SOCKS messages
    kAsk,      // a person is asked
    kDial,     // resolving and connecting
    kGreet,    // sending the 200 or its like
    kSniff,    // reading what tells TLS from HTTP
    kHello,    // reading the TLS hello
    kDeliver,  // sending on what came before the tunnel: the hello, or what followed an upgrade
    kAnswer,   // waiting for what the server says to the hello
    kRetry,    // the server wants a second hello: it is judged too
    kForward,  // relaying one plain HTTP exchange
    kLast,     // sending the last bytes the client gets
    kLinger,   // waiting for the client to close, so that no reset destroys those bytes
  };

  // How the client came to say where it wants to go.
  enum class Way : uint8_t { kProxy, kSocks, kRedirected };
  // In which words it can be told of a refusal now.
  enum class Words : uint8_t { kHttp, kSocks, kNone };

  // What becomes of a request once it is allowed.
  enum class Then : uint8_t { kDialOrForward, kDial, kDialOrSniff };

  explicit Client(Context& context)
      : Member(context.company), context_(context), share_(context.budget), timer_(context.loop, *this) {}

  void on_stream(net::Stream& stream) override;
  void on_alarm() override;
  void on_dialed(std::unique_ptr<net::Stream> stream) override;
  void on_dial_failed(const DialFailure& failure) override;
  void on_answer(Answer answer) override;
  bool rules_changed(const Review& review) override;
  void on_forward_done(bool keep_alive) override;
  void on_forward_refused(Reason reason, std::string detail, int status) override;
  void on_forward_broken() override;
  void on_forward_upgraded(std::unique_ptr<net::Stream> upstream, std::string to_client) override;

  static std::unique_ptr<Client> make(Context& context, base::Fd socket);
  void step();
  // Each returns true when the next phase can go on at once.
  bool read_head();
  bool read_socks();
  bool sniff();
  bool send_greeting();
  bool read_hello();
  bool deliver();
  bool await_answer();
  bool read_second_hello();
  bool relay_answer();
  bool release();
  bool end_unanswered();
  bool send_last();
  void drain();

  // Appends what the client has sent, up to one chunk.
  net::Stream::Outcome read_more();
  // Sends from the front of `text`. False when the stream takes no more now or is broken (then this has left).
  bool send_all(net::Stream& stream, std::string& text, bool more = false);

  void take_request(std::string head);
  void take_connect(const net::RequestHead& head);
  void take_plain(const net::RequestHead& head);
  [[nodiscard]] bool take_authority(const net::Authority& authority, uint16_t default_port,
                                    const net::RequestHead& head);
  // Asks the rules and takes the grant; why not, otherwise.
  std::optional<Reason> admit(const Request& request);
  // The same, and goes on; what does not pass is refused, what nobody has decided is asked.
  void judge(const Request& request, Then then);
  void decided(std::optional<Reason> why, Doing doing, Then then);
  void go_on(Then then);
  void answer_known(Answer answer);
  void dial();
  void start_forward(std::unique_ptr<net::Stream> upstream);
  bool secure(std::unique_ptr<net::Stream>& stream);
  void take_destination(Destination destination);
  bool take_socks_request(const net::SocksRequest& request);
  bool refuse_socks(Reason reason, const net::SocksProblem& problem);
  [[nodiscard]] net::HttpResult<void> check_host_field(const net::RequestHead& head, uint16_t default_port) const;
  // The loopback address and port that the guest reaches this proxy by.
  [[nodiscard]] bool names_this_proxy(std::string_view host, uint16_t port) const;
  bool judge_hello(net::HelloVerdict verdict);
  void begin_tunnel();
  void become_tunnel();
  bool cut(Reason reason, std::string detail);
  void revoke();

  // CONNECT, SOCKS5, DIRECT, or that of the plain request at hand: for people.
  [[nodiscard]] std::string method() const;
  Denial denial(Reason reason, std::string detail) const;
  void refuse(Denial denial);  // in the words at hand
  void refuse_malformed(const net::HttpProblem& problem);
  void refuse_with_status(Denial denial, int status);
  void refuse_hello(Reason reason, std::string detail);  // inside a tunnel that was already granted
  void finish(std::string last_bytes);

  Context& context_;
  Share share_;
  std::unique_ptr<net::Stream> client_;
  net::Timer timer_;
  Phase phase_ = Phase::kHead;
  std::string in_;   // of the client, not yet used
  std::string out_;  // for the client
  net::HeadScanner scanner_;
  size_t lingered_ = 0;

  Way way_ = Way::kProxy;
  Words words_ = Words::kHttp;
  bool fresh_ = true;                 // nothing was read yet
  bool greeted_ = false;              // the first SOCKS message was read
  std::optional<Destination> fixed_;  // where every request on this connection goes: not of a client of the proxy

  // Of the request at hand.
  bool json_ = false;
  std::string host_;  // canonical
  uint16_t port_ = 0;
  RulePtr rule_;
  RulePtr once_;  // of a person's answer to this request, or to this connection
  Then then_ = Then::kDialOrForward;
  Doing doing_ = Doing::kUnknown;  // of the request that waits for an answer
  uint64_t generation_ = 0;        // of the rules when the dialling began
  std::unique_ptr<Grant> grant_;   // from the verdict on
  std::optional<Dialer> dialer_;
  std::unique_ptr<net::Stream> upstream_;
  net::HelloReader hello_;
  std::unique_ptr<net::SecondHelloReader> second_hello_;
  bool hello_judged_ = false;
  bool answered_ = false;  // no other hello can come, or it was judged
  std::string held_;       // what the client sent behind its hello, until that is known
  size_t hello_fed_ = 0;
  bool idle_ = false;          // kept alive, no byte of the next request yet
  ForwardRequest request_;     // of plain HTTP
  std::string upstream_head_;  // likewise; empty for CONNECT
  std::unique_ptr<Forward> forward_;
};

}  // namespace belljar::egress
