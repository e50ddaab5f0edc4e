// Live quotes: the stream of a question, asked for again after a refusal that passes, as of a market that is behind for a moment.

import { call, exact } from './page.js';

// After how long a question is asked again whose refusal passes, milliseconds.
const RETRY_MS = 2000;

// Follows the quotes of a question until `close()`. `question` makes its query, and may throw why there is none; `quoted` takes each
// answer, `waits` is told why there is none for a while, and `ended` why there will be none.
export function followQuotes(question, { quoted, waits, ended }) {
  let source = null;
  let pause = null;
  let isClosed = false;
  const close = () => {
    isClosed = true;
    source?.close();
    clearTimeout(pause);
  };
  const again = () => {
    if (!isClosed) pause = setTimeout(open, RETRY_MS);
  };
  const refused = (error) => {
    if (isClosed) return;
    if (error.retryable) {
      waits(`${error.message}; asking again`);
      again();
    } else {
      close();
      ended(error.message);
    }
  };
  async function open() {
    try {
      const query = await question();
      if (!isClosed) listen(query);
    } catch (error) {
      refused(error);
    }
  }
  function listen(query) {
    source = new EventSource(`/v1/quote/stream?${query}`);
    source.addEventListener('quote', (event) => quoted(exact(event.data)));
    source.addEventListener('end', (event) => {
      const { detail, retryable } = exact(event.data);
      // The browser would open it again after the last quote, and be told nothing before an amount changes.
      source.close();
      refused({ message: detail, retryable });
    });
    source.addEventListener('error', () => {
      // A refusal has no events: what it says is asked for.
      if (source.readyState === EventSource.CLOSED) call(`/v1/quote?${query}`).then(again, refused);
    });
  }
  open();
  return { close };
}
