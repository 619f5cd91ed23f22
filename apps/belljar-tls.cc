// The TLS of a session's hook, started by belljar before it seals itself: `belljar-tls HOST`, with a socket of
// belljar's as descriptor 0. For each connection that belljar has made to the control host it gets that socket and one
// end of a pair, speaks TLS on the one and hands the clear text to the other. It alone knows OpenSSL, opens no
// connection and, once it has read the certificates of the authorities, no file.
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "linux/capabilities.h"
#include "linux/descriptor_passing.h"
#include "linux/landlock_domain.h"
#include "linux/seal.h"

namespace {

using belljar::base::Fd;

constexpr unsigned kHandshakeSeconds = 15;
constexpr size_t kBuffer = size_t{64} << 10U;

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using Context = std::unique_ptr<SSL_CTX, FreeContext>;
using Ssl = std::unique_ptr<SSL, FreeSsl>;

// The message of both sides: empty text means that it is ready.
struct Word {
  std::array<char, 256> text{};
};

void say(std::string_view text) {
  Word word;
  text.copy(word.text.data(), word.text.size() - 1);
  (void)belljar::linux::send_with_descriptor(STDIN_FILENO, &word, sizeof word, -1);
}

// Those of $SSL_CERT_FILE, else the system's, wherever its kind keeps them.
bool load_authorities(SSL_CTX* context) {
  if (const char* own = ::getenv("SSL_CERT_FILE")) return SSL_CTX_load_verify_file(context, own) == 1;
  for (const char* path : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    if (SSL_CTX_load_verify_file(context, path) == 1) return true;
  }
  return false;
}

Context make_context() {
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  Context context(SSL_CTX_new(TLS_client_method()));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1) return {};
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  return context;
}

// The certificate must be for `host`, a name or an address.
Ssl make_ssl(SSL_CTX* context, const char* host) {
  Ssl ssl(SSL_new(context));
  if (!ssl) return {};
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), host) == 1) return ssl;
  SSL_set_hostflags(ssl.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  // What SSL_set_tlsext_host_name() is short for.
  if (SSL_set1_host(ssl.get(), host) != 1 ||
      SSL_ctrl(ssl.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, const_cast<char*>(host)) != 1) {
    return {};
  }
  return ssl;
}

// Nothing can be opened or connected any more.
bool seal() {
  if (belljar::linux::set_no_new_privs() != 0) return false;
  auto features = belljar::linux::landlock_features(belljar::linux::landlock_abi());
  features.tcp = belljar::linux::landlock_abi() >= 4;
  if (features.files && belljar::linux::landlock_restrict({}, features) != 0) return false;
  return belljar::linux::drop_held_capabilities() == 0;
}

void set_blocking(int fd, bool blocking) {
  const int flags = ::fcntl(fd, F_GETFL);
  ::fcntl(fd, F_SETFL, blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

bool wants_more(SSL* ssl, int result, bool& wants_write) {
  const int error = SSL_get_error(ssl, result);
  if (error == SSL_ERROR_WANT_WRITE) wants_write = true;
  return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

// What has gone through a buffer is taken from its front. False at the end of the way.
bool flush(int to, std::string& text) {
  while (!text.empty()) {
    const ssize_t n = ::send(to, text.data(), text.size(), MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN;
    text.erase(0, static_cast<size_t>(n));
  }
  return true;
}

bool fill(int from, std::string& text) {
  if (text.size() >= kBuffer) return true;
  std::array<char, 16384> chunk;
  const ssize_t n = ::recv(from, chunk.data(), chunk.size(), 0);
  if (n > 0) text.append(chunk.data(), static_cast<size_t>(n));
  return n > 0 || (n < 0 && errno == EAGAIN);
}

// One round of the server's side. False when it has nothing more to say.
bool exchange(SSL* ssl, std::string& up, std::string& down, bool& wants_write) {
  while (!up.empty()) {
    const int n = SSL_write(ssl, up.data(), static_cast<int>(up.size()));
    if (n <= 0 && !wants_more(ssl, n, wants_write)) return false;
    if (n <= 0) break;
    up.erase(0, static_cast<size_t>(n));
  }
  std::array<char, 16384> chunk;
  while (down.size() < kBuffer) {
    const int n = SSL_read(ssl, chunk.data(), chunk.size());
    if (n <= 0) return wants_more(ssl, n, wants_write);
    down.append(chunk.data(), static_cast<size_t>(n));
  }
  return true;
}

void relay(SSL* ssl, int server, int clear) {
  set_blocking(server, false);
  set_blocking(clear, false);
  std::string up;
  std::string down;
  for (;;) {
    bool wants_write = false;
    if (!fill(clear, up)) return;
    const bool open = exchange(ssl, up, down, wants_write);
    if (!flush(clear, down)) return;
    if (!open && down.empty()) return;
    const auto wish = [](bool in, bool out) { return static_cast<short>((in ? POLLIN : 0) | (out ? POLLOUT : 0)); };
    const short of_server = wish(down.size() < kBuffer, wants_write);
    // poll(2) tells of a hang-up whatever is asked for: of a server's that has no turn now, again and again.
    std::array<pollfd, 2> wait{pollfd{clear, wish(up.size() < kBuffer, !down.empty()), 0},
                               pollfd{open && of_server != 0 ? server : -1, of_server, 0}};
    if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) return;
    // Nobody is there to hear an answer, and no more is read of what there was to say.
    if ((wait[0].revents & (POLLHUP | POLLERR)) != 0 && up.size() >= kBuffer) return;
  }
}

// Instead of an answer of the control host's, to which nothing was said.
void answer_failure(int clear, SSL* ssl) {
  const long verdict = SSL_get_verify_result(ssl);
  const char* reason =
      verdict != X509_V_OK ? X509_verify_cert_error_string(verdict) : ERR_reason_error_string(ERR_peek_last_error());
  const std::string body = std::string("belljar: no TLS with the control host: ") +
                           (reason != nullptr ? reason : "it ended the connection") + "\n";
  std::string answer = "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: " +
                       std::to_string(body.size()) + "\r\n\r\n" + body;
  set_blocking(clear, true);
  (void)flush(clear, answer);
  // What the request still holds is read, lest its rest reset the answer away.
  ::shutdown(clear, SHUT_WR);
  std::array<char, 4096> rest;
  while (::recv(clear, rest.data(), rest.size(), 0) > 0) {
  }
}

void serve(SSL_CTX* context, const char* host, int server, int clear) {
  const Ssl ssl = make_ssl(context, host);
  if (!ssl || SSL_set_fd(ssl.get(), server) != 1) return;
  set_blocking(server, true);
  ::alarm(kHandshakeSeconds);
  if (SSL_connect(ssl.get()) != 1) return answer_failure(clear, ssl.get());
  ::alarm(0);
  relay(ssl.get(), server, clear);
  SSL_shutdown(ssl.get());
}

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_IGN);  // children leave nothing to wait for
  ::prctl(PR_SET_NAME, "belljar-tls");
  if (argc != 2) return 125;
  const Context context = make_context();
  if (!context || !load_authorities(context.get())) {
    say("no certificates of authorities could be read");
    return 125;
  }
  if (!make_ssl(context.get(), argv[1]) || !seal()) {
    say("it could not seal itself");
    return 125;
  }
  say("");
  const pid_t self = ::getpid();
  for (;;) {
    char byte = 0;
    std::array<int, 2> given{-1, -1};
    // The end of belljar's is the end of this.
    if (belljar::linux::receive_with_descriptors(STDIN_FILENO, &byte, 1, given.data(), given.size()) != 0) return 0;
    const Fd server(given[0]);
    const Fd clear(given[1]);
    if (::fork() == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != self) ::_exit(0);
      ::close(STDIN_FILENO);
      serve(context.get(), argv[1], server.get(), clear.get());
      ::_exit(0);
    }
  }
}
