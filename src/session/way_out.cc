#include "session/way_out.h"

#include <cstdlib>
#include <optional>
#include <utility>

#include "policy/hook_url.h"
#include "session/launcher_seal.h"

namespace belljar::session {
namespace {

// The token stands in no plan.
std::optional<egress::Hook> hook_of(const plan::Plan& plan, const std::string& session, const HookSecrets& secrets) {
  if (plan.hook.url.empty()) return {};
  auto url = policy::parse_hook_url(plan.hook.url);
  if (!url) return {};
  std::string token = secrets.token;
  if (token.empty() && !plan.hook.token_env.empty()) {
    const char* value = ::getenv(plan.hook.token_env.c_str());
    if (value != nullptr) token = value;
  }
  return egress::Hook{std::move(url->host), url->port, std::move(url->target), std::move(token), session, {}};
}

}  // namespace

base::Status WayOut::keep_audit(base::Fd file, const std::string& session, const policy::Audit& audit) {
  if (!file) return {};
  auto started = egress::Audit::start(
      {std::move(file), session, audit.chain, audit.required, [] { return seal_thread(DialPorts{}); }});
  if (!started) {
    started.error().subject = audit.file;
    return std::unexpected(std::move(started).error());
  }
  audit_ = std::move(*started);
  return {};
}

base::Status WayOut::open(tiers::jail::Guest& guest, base::Fd listener, const plan::Plan& plan,
                          const std::string& session, News news) {
  egress::Options options;
  options.rules = plan.hosts;
  options.hook = hook_of(plan, session, news.hook);
  if (const auto url = policy::parse_hook_url(plan.hook.url); options.hook && url && url->tls) {
    BELLJAR_ASSIGN(hook_tls_, HookTls::start(news.tls_program, url->host, news.hook.authorities));
    options.hook->secure = [this](int connected) { return hook_tls_.secure(connected); };
  }
  if (const auto& upstream = plan.upstream) {
    options.upstream = egress::UpstreamProxy{upstream->host, upstream->port, upstream->authorization, upstream->direct};
  }
  if (news.questions) options.questions = std::make_shared<base::Fd>(std::move(news.questions));
  if (news.name_servers) options.name_servers = std::make_shared<base::Fd>(std::move(news.name_servers));
  if (news.door.file) {
    options.rule_file = std::make_shared<base::Fd>(std::move(news.door.file));
    options.rule_notices = std::make_shared<base::Fd>(std::move(news.door.bell));
    options.may_bring = [ports = launcher_ports(plan)](const policy::HostRule& rule) { return covers(ports, rule); };
  }
  options.audit = audit_.get();
  tiers::jail::Transparent ways = guest.take_transparent();
  BELLJAR_ASSIGN(proxy_, egress::Proxy::create(std::move(listener), std::move(options),
                                               {std::move(ways.redirected), std::move(ways.datagrams),
                                                std::move(ways.streams), ways.v6}));
  guest_ = &guest;
  return {};
}

void WayOut::prepare() {
  if (proxy_) proxy_->prepare();
}

void WayOut::start() {
  if (!proxy_) return;
  keeper_ = &guest_->keeper();
  keeper_->run([proxy = proxy_.get()] { (void)proxy->run(); });
}

void WayOut::begin_to_close() {
  if (keeper_ != nullptr) proxy_->stop();
}

void WayOut::close(Settlement& settlement) {
  if (!stop()) return;
  settlement.denials = proxy_->denials();
  settlement.unlisted_denials = proxy_->unlisted_denials();
  settlement.allowed = proxy_->uses();
  settlement.unlisted_allowed = proxy_->unlisted_uses();
  proxy_.reset();  // what is still open ends now, and says so in the audit file
  if (audit_) settlement.audit = audit_->close();
  audit_.reset();
}

bool WayOut::stop() {
  if (keeper_ == nullptr) return false;
  proxy_->stop();
  std::exchange(keeper_, nullptr)->wait_for_job();
  return true;
}

}  // namespace belljar::session
