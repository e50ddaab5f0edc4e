//! HTTP server on a thread and a runtime of its own: its handlers never wait behind the tasks of the runtime that does the work.
//!
//! The system gives a thread that mostly sleeps a processor as soon as it is woken, however busy the others are; a task has to
//! wait until those before it have yielded.

use std::{io, thread};

use axum::Router;
use service_kit::CancellationToken;
use tokio::{net::TcpListener, runtime::Builder, sync::oneshot};

/// Serves until `shutdown`, or until this is dropped.
///
/// # Errors
/// When the thread or its runtime cannot be started, or the listener fails for good.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let listener = listener.into_std()?;
    let stop = shutdown.child_token();
    let _stopped_with_this = stop.clone().drop_guard();
    let (ended, end) = oneshot::channel();
    let serving = async move {
        axum::serve(TcpListener::from_std(listener)?, router)
            .with_graceful_shutdown(stop.cancelled_owned())
            .await
    };
    thread::Builder::new()
        .name("health".to_owned())
        .spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            let served = runtime.and_then(|runtime| runtime.block_on(serving));
            // Nobody waits for it any more where this was dropped.
            let _ = ended.send(served);
        })?;
    let broke_off = |_| {
        Err(io::Error::other(
            "the thread of the health endpoints broke off",
        ))
    };
    end.await.unwrap_or_else(broke_off)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{SocketAddr, TcpStream},
        time::{Duration, Instant},
    };

    use axum::routing::get;
    use tokio::task::{JoinHandle, yield_now};

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(20);

    async fn started(shutdown: &CancellationToken) -> (SocketAddr, JoinHandle<io::Result<()>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", get(async || "here"));
        let serving = tokio::spawn(serve(listener, router, shutdown.clone()));
        // This runtime has one thread, so that it takes the task up now.
        yield_now().await;
        (address, serving)
    }

    /// One request, for which the calling thread does nothing else.
    fn ask(address: SocketAddr) -> io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    #[tokio::test]
    async fn it_answers_while_the_runtime_that_does_the_work_is_blocked() {
        let shutdown = CancellationToken::new();
        let (address, serving) = started(&shutdown).await;
        assert!(ask(address).unwrap().ends_with("here"));
        shutdown.cancel();
        serving.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn it_ends_with_what_it_was_started_for() {
        let (address, serving) = started(&CancellationToken::new()).await;
        assert!(ask(address).unwrap().ends_with("here"));
        serving.abort();
        assert!(serving.await.unwrap_err().is_cancelled());
        let begun = Instant::now();
        while ask(address).is_ok() {
            assert!(begun.elapsed() < DEADLINE, "the thread serves on");
            thread::sleep(Duration::from_millis(10));
        }
    }
}
