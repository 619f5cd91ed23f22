// A TLS server that tells what it hears, and a guest's attempts to speak with another by the name of an allowed one.
#pragma once

#include <string>

#include "support/process.h"

namespace belljar::testing {

// On port 443 of `address`, with cert.pem and key.pem of `folder`. It prints `ready`, and writes to `heard` there, for
// each connection, the name in its hello: `nothing` when no byte came, `something` when it was no hello that names a
// host.
inline Command tls_server(const std::string& folder, const std::string& address) {
  Command out{.argv = {"python3", "-u", "-c",
                       "import socket, ssl, sys\n"
                       "name = ['']\n"
                       "def hear(s, n, c): name[0] = str(n)\n"
                       "c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); c.load_cert_chain('cert.pem', 'key.pem')\n"
                       "c.sni_callback = hear\n"
                       "l = socket.create_server((sys.argv[1], 443)); print('ready')\n"
                       "while True:\n"
                       "  s, _ = l.accept(); s.settimeout(20)\n"
                       "  try:\n"
                       "    name[0] = 'something' if s.recv(1, socket.MSG_PEEK) else 'nothing'\n"
                       "    t = c.wrap_socket(s, server_side=True); t.recv(4096)\n"
                       "    t.sendall(b'HTTP/1.0 200 OK\\r\\n\\r\\nthe server'); t.close()\n"
                       "  except OSError: pass\n"
                       "  print(name[0], file=open('heard', 'a'))\n",
                       address},
              .cwd = folder};
  out.err = Stream::null();
  return out;
}

// A script: connections to `allowed`, by each way that there is, whose hello names `allowed`, then `other`, then
// nobody; and one with plain words. A line each: what it is and the status of the answer, 000 for none.
inline std::string hellos(const std::string& allowed, const std::string& other, bool transparent) {
  const std::string status = "curl -sk --max-time 20 -o /dev/null -w '%{http_code}\\n' ";
  std::string out = "p=${https_proxy#http://}; a() { printf '%s %s ' \"$1\" \"$2\"; n=$2; shift 2; " + status +
                    "\"$@\" --connect-to ::" + allowed + ":443 https://$n/; }\n" +
                    "o() { printf 'openssl '; openssl s_client -proxy \"$p\" -connect " + allowed +
                    ":443 \"$@\" </dev/null 2>&1 | grep -c '^subject=CN = '; }\n";
  for (const std::string& name : {allowed, other}) {
    out += "a connect " + name + "; a socks " + name + " --proxy \"socks5h://$p\"; ";
    if (transparent) out += "a direct " + name + " --noproxy '*'; ";
    out += "o -servername " + name + "\n";
  }
  return out + "o -noservername; printf 'plain '; " + status + "-p http://" + allowed + ":443/; true";
}

}  // namespace belljar::testing
