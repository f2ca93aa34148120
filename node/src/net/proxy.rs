//! TCP connections to other machines through an HTTP proxy, by the method CONNECT (RFC 9110, section 9.3.6), for
//! sites that let nothing else out. What goes through it is encrypted from end to end: the proxy learns addresses and
//! sizes. QUIC needs UDP and goes no other way than before.

use data_encoding::BASE64;
use futures::FutureExt;
use futures::future::BoxFuture;
use libp2p::core::Transport;
use libp2p::core::transport::{DialOpts, ListenerId, TransportError, TransportEvent};
use libp2p::multiaddr::{Multiaddr, Protocol};
use libp2p::tcp;
use libp2p::tcp::tokio::TcpStream as Stream;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Time for a connection and the answer of the proxy: less than that of a handshake, so that its end is named.
const ANSWER_WAIT: Duration = Duration::from_secs(4);

/// The longest head of an answer that is read.
const HEAD_BYTES_MAX: usize = 8192;

/// The scheme of a proxy.
const SCHEME: &str = "http://";

/// An HTTP proxy.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Name or address, and port.
    host: String,
    port: u16,
    /// Name and password, as they are sent.
    credentials: Option<String>,
}

impl std::str::FromStr for Proxy {
    type Err = &'static str;

    /// Reads `http://[NAME:PASSWORD@]HOST:PORT`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const NEEDED: &str = "give http://HOST:PORT or http://NAME:PASSWORD@HOST:PORT";
        let rest = text.strip_prefix(SCHEME).ok_or(NEEDED)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (credentials, place) = match rest.rsplit_once('@') {
            Some((credentials, place)) => (Some(BASE64.encode(credentials.as_bytes())), place),
            None => (None, rest),
        };
        let (host, port) = place.rsplit_once(':').ok_or(NEEDED)?;
        let port = port.parse().ok().filter(|port| *port > 0).ok_or(NEEDED)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let odd = |c: char| c.is_whitespace() || c.is_control() || "/?#@".contains(c);
        if host.is_empty() || host.contains(odd) {
            return Err(NEEDED);
        }
        Ok(Self {
            host: host.to_owned(),
            port,
            credentials,
        })
    }
}

impl fmt::Display for Proxy {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Proxy {
    /// The other end of a connection to `target`, which is an authority such as `192.0.2.7:443`.
    ///
    /// # Errors
    /// If the proxy cannot be reached, refuses, answers with something else, or takes longer than [`ANSWER_WAIT`].
    async fn connect(&self, target: &str) -> io::Result<TcpStream> {
        let answered = timeout(ANSWER_WAIT, self.ask(target)).await;
        answered.unwrap_or_else(|_| {
            let seconds = ANSWER_WAIT.as_secs();
            Err(self.failed(&format!("has not connected to {target} within {seconds} s")))
        })
    }

    fn failed(&self, what: &str) -> io::Error {
        io::Error::other(format!("the proxy {self} {what}"))
    }

    async fn ask(&self, target: &str) -> io::Result<TcpStream> {
        let failed = |what: String| self.failed(&what);
        let mut stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|error| failed(format!("cannot be reached: {error}")))?;
        stream.set_nodelay(true)?;
        let credentials = self.credentials.as_ref();
        let credentials = credentials.map_or(String::new(), |it| {
            format!("Proxy-Authorization: Basic {it}\r\n")
        });
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{credentials}\r\n");
        stream.write_all(request.as_bytes()).await?;
        let head = head(&mut stream)
            .await
            .map_err(|error| failed(error.to_string()))?;
        match status(&head) {
            Some(200..=299) => Ok(stream),
            Some(407) => Err(failed(format!(
                "wants a name and a password for {target} (network.proxy = \"http://NAME:PASSWORD@HOST:PORT\")"
            ))),
            Some(code) => Err(failed(format!(
                "refuses {target} with status {code}: ask its administrator to let this address and port through"
            ))),
            None => Err(failed("does not answer as an HTTP proxy".to_owned())),
        }
    }
}

/// The head of an answer. It is read byte by byte, because bytes behind it belong to the connection.
async fn head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == HEAD_BYTES_MAX {
            return Err(io::Error::other("answers without an end"));
        }
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return Err(io::Error::other("closes the connection")),
        }
    }
    Ok(head)
}

/// The status of an answer; none if it is no HTTP.
fn status(head: &[u8]) -> Option<u16> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let rest = line.strip_prefix("HTTP/1.")?.get(1..)?;
    rest.strip_prefix(' ')?.get(..3)?.parse().ok()
}

/// The authority behind an address, if a proxy is to connect to it: TCP, and not on this machine.
fn target(address: &Multiaddr) -> Option<String> {
    let mut parts = address.iter();
    let host = match parts.next()? {
        Protocol::Ip4(ip) if !ip.is_loopback() => ip.to_string(),
        Protocol::Ip6(ip) if !ip.is_loopback() => format!("[{ip}]"),
        // Names are looked up before, and those that other peers tell are dialled by no way.
        _ => return None,
    };
    let Protocol::Tcp(port) = parts.next()? else {
        return None;
    };
    let ends = parts.all(|part| matches!(part, Protocol::P2p(_)));
    ends.then(|| format!("{host}:{port}"))
}

/// TCP that dials other machines through a proxy, if there is one.
pub(super) struct Tcp {
    direct: tcp::tokio::Transport,
    proxy: Option<Arc<Proxy>>,
}

impl Tcp {
    pub(super) fn new(config: tcp::Config, proxy: Option<Proxy>) -> Self {
        Self {
            direct: tcp::tokio::Transport::new(config),
            proxy: proxy.map(Arc::new),
        }
    }
}

impl Transport for Tcp {
    type Output = Stream;
    type Error = io::Error;
    type ListenerUpgrade = <tcp::tokio::Transport as Transport>::ListenerUpgrade;
    type Dial = BoxFuture<'static, io::Result<Stream>>;

    fn listen_on(
        &mut self,
        id: ListenerId,
        address: Multiaddr,
    ) -> Result<(), TransportError<io::Error>> {
        self.direct.listen_on(id, address)
    }

    fn remove_listener(&mut self, id: ListenerId) -> bool {
        self.direct.remove_listener(id)
    }

    fn dial(
        &mut self,
        address: Multiaddr,
        options: DialOpts,
    ) -> Result<Self::Dial, TransportError<io::Error>> {
        match (&self.proxy, target(&address)) {
            (Some(proxy), Some(target)) => {
                let proxy = Arc::clone(proxy);
                Ok(async move { proxy.connect(&target).await.map(Stream) }.boxed())
            }
            _ => Ok(self.direct.dial(address, options)?.boxed()),
        }
    }

    fn poll(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<TransportEvent<Self::ListenerUpgrade, io::Error>> {
        Pin::new(&mut self.direct).poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// A proxy with this answer, and the request that came.
    async fn answering(answer: &'static [u8]) -> (Proxy, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let asked = String::from_utf8(head(&mut stream).await.unwrap()).unwrap();
            stream.write_all(answer).await.unwrap();
            // What comes through the connection goes back.
            let mut byte = [0];
            while stream.read(&mut byte).await.is_ok_and(|n| n > 0) {
                stream.write_all(&byte).await.unwrap();
            }
            asked
        });
        let proxy = format!("http://me:secret@127.0.0.1:{port}")
            .parse()
            .unwrap();
        (proxy, asked)
    }

    #[tokio::test]
    async fn a_connection_goes_through_and_loses_no_byte() {
        let answer = b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\nearly";
        let (proxy, asked) = answering(answer).await;
        let mut stream = proxy.connect("192.0.2.7:443").await.unwrap();
        let mut early = [0; 5];
        stream.read_exact(&mut early).await.unwrap();
        assert_eq!(&early, b"early");
        stream.write_all(b"x").await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), b'x');
        drop(stream);
        let asked = asked.await.unwrap();
        assert!(asked.starts_with("CONNECT 192.0.2.7:443 HTTP/1.1\r\nHost: 192.0.2.7:443\r\n"));
        assert!(
            asked.contains("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"),
            "{asked}"
        );
    }

    #[tokio::test]
    async fn refusals_say_what_to_do_and_no_password() {
        for (answer, says) in [
            (
                &b"HTTP/1.1 403 Forbidden\r\n\r\n"[..],
                "status 403: ask its administrator",
            ),
            (b"HTTP/1.1 407 Auth\r\n\r\n", "wants a name and a password"),
            (
                b"SSH-2.0-OpenSSH\r\n\r\n",
                "does not answer as an HTTP proxy",
            ),
            (b"HTTP/1.1 2\r\n\r\n", "does not answer as an HTTP proxy"),
        ] {
            let (proxy, _) = answering(answer).await;
            let error = proxy
                .connect("192.0.2.7:443")
                .await
                .unwrap_err()
                .to_string();
            assert!(error.contains(says), "{error}");
            assert!(!error.contains("secret") && !format!("{proxy:?}").contains("bWU6"));
        }
        let gone: Proxy = "http://127.0.0.1:1".parse().unwrap();
        let error = gone.connect("192.0.2.7:443").await.unwrap_err().to_string();
        assert!(
            error.contains("http://127.0.0.1:1 cannot be reached"),
            "{error}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_proxy_that_hangs_is_named_in_time() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let proxy: Proxy = format!("http://{address}").parse().unwrap();
        let error = proxy
            .connect("192.0.2.7:443")
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("has not connected to 192.0.2.7:443 within 4 s"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn an_answer_without_an_end_is_bounded() {
        let long = vec![b'a'; 2 * HEAD_BYTES_MAX].leak();
        let (proxy, _) = answering(long).await;
        let error = proxy
            .connect("192.0.2.7:443")
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("without an end"), "{error}");
    }

    #[tokio::test]
    async fn only_other_machines_are_dialled_through_it() {
        let (proxy, asked) = answering(b"HTTP/1.0 200 OK\r\n\r\n").await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut tcp = Tcp::new(tcp::Config::default(), Some(proxy));
        let options = || DialOpts {
            role: libp2p::core::Endpoint::Dialer,
            port_use: libp2p::core::transport::PortUse::New,
        };
        let near: Multiaddr = format!("/ip4/127.0.0.1/tcp/{port}").parse().unwrap();
        let near = tcp.dial(near, options()).unwrap();
        timeout(Duration::from_secs(10), near)
            .await
            .unwrap()
            .unwrap();
        let far: Multiaddr = "/ip4/192.0.2.7/tcp/443".parse().unwrap();
        let far = tcp.dial(far, options()).unwrap();
        drop(
            timeout(Duration::from_secs(10), far)
                .await
                .unwrap()
                .unwrap(),
        );
        assert!(asked.await.unwrap().starts_with("CONNECT 192.0.2.7:443"));
        let udp: Multiaddr = "/ip4/192.0.2.7/udp/443/quic-v1".parse().unwrap();
        assert!(tcp.dial(udp, options()).is_err());
    }

    #[test]
    fn addresses_and_proxies_are_read() {
        for (address, wanted) in [
            ("/ip4/192.0.2.7/tcp/443", Some("192.0.2.7:443")),
            ("/ip6/2001:db8::1/tcp/4001", Some("[2001:db8::1]:4001")),
            ("/dns4/train.example/tcp/443", None),
            ("/ip4/127.0.0.1/tcp/443", None),
            ("/ip6/::1/tcp/443", None),
            ("/ip4/192.0.2.7/udp/443/quic-v1", None),
            ("/ip4/192.0.2.7/tcp/443/ws", None),
        ] {
            let found = target(&address.parse().unwrap());
            assert_eq!(found.as_deref(), wanted, "{address}");
        }
        let proxy: Proxy = "http://[::1]:3128/".parse().unwrap();
        assert_eq!((proxy.host.as_str(), proxy.port), ("::1", 3128));
        for bad in [
            "",
            "proxy:3128",
            "https://proxy:3128",
            "http://proxy",
            "http://:1",
            "http://a b:1",
            "http://p:0",
            "http://p:99999",
        ] {
            assert!(bad.parse::<Proxy>().is_err(), "{bad}");
        }
    }
}
