// One plain HTTP request and its response, relayed over one upstream connection of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "egress/denial.h"
#include "egress/forward_head.h"
#include "egress/journal.h"
#include "net/http_body.h"
#include "net/http_head.h"
#include "net/stream.h"

namespace belljar::egress {

// Each call is the exchange's last act: the owner may destroy it from inside.
class ForwardOwner {
 public:
  // The whole response is sent. `keep_alive`: the request was taken whole and the client's connection may go on.
  virtual void on_forward_done(bool keep_alive) = 0;
  // Nothing was sent to the client yet, so it can still be told.
  virtual void on_forward_refused(Reason reason, std::string detail, int status) = 0;
  // Cut off inside the response, or the client is gone.
  virtual void on_forward_broken() = 0;
  // Upgraded: `to_client` is still to be sent, then both streams are a tunnel.
  virtual void on_forward_upgraded(std::unique_ptr<net::Stream> upstream, std::string to_client) = 0;

 protected:
  ~ForwardOwner() = default;
};

// Two bounded buffers, one each way; a side that does not take its bytes holds the other back. Request and response
// flow at the same time, so an early answer and `100 Continue` pass. No time limits: an answer may take hours.
class Forward final : private net::StreamOwner {
 public:
  // `client_in` holds what the client has sent beyond the head; what belongs to the next request stays in it.
  // `head` is the head for the upstream. `client`, `client_in`, `owner` and `grant` outlive
  // this.
  Forward(ForwardOwner& owner, net::Stream& client, std::string& client_in, std::unique_ptr<net::Stream> upstream,
          ForwardRequest request, std::string head, Grant& grant);
  Forward(const Forward&) = delete;
  Forward& operator=(const Forward&) = delete;

  [[nodiscard]] const net::Stream* upstream() const { return upstream_.get(); }
  void reset_on_close() { upstream_->reset_on_close(); }
  // Bytes of memory that an exchange may hold.
  static constexpr size_t kBuffers = size_t{64} << 10U;

  // Goes on as far as both sides allow, for one turn.
  void pump();

 private:
  static constexpr size_t kBuffer = size_t{16} << 10U;
  static constexpr int kTurn = 64;  // steps before the other connections have their turn
  static constexpr int kMaxInterim = 32;

  enum class Step : uint8_t { kMoved, kWaits, kOver };  // kOver: the owner was told, this may be gone

  void on_stream(net::Stream& stream) override;
  Step push_request();
  Step pull_response();
  Step read_response_head();
  Step take_response_head(std::string_view head);
  Step take_interim(const net::ResponseHead& head);
  Step read_response_body();
  Step finish_request();
  Step fail(Reason reason, std::string detail, int status = 0);
  Step cut();
  Step read_into(net::Stream& from, std::string& buffer, bool& ended);

  ForwardOwner& owner_;
  net::Stream& client_;
  std::string& client_in_;
  std::unique_ptr<net::Stream> upstream_;
  ForwardRequest request_;
  Grant& grant_;
  net::BodyCopier request_body_;
  std::string to_upstream_;
  bool request_stopped_ = false;  // the upstream takes no more of it

  net::HeadScanner scanner_;
  std::string from_upstream_;
  bool upstream_ended_ = false;
  bool have_head_ = false;
  net::BodyCopier response_body_;
  std::string to_client_;
  bool keep_alive_ = false;
  int interim_ = 0;
  uint64_t answered_ = 0;  // bytes of the body
};

}  // namespace belljar::egress
