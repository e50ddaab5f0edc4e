// Explain: what any transaction does, what it may cost, and whether Sluice built it.

import { byId, call } from './page.js';
import { show, verdict } from './explanation.js';

// Longest signature in base 58; a transaction is longer in base64.
const SIGNATURE_LENGTH = 88;

function request() {
  const text = byId('request').value.trim();
  if (text === '') return null;
  try {
    JSON.parse(text);
  } catch (error) {
    throw new Error(`Body: ${error.message}; paste the JSON that the transaction was asked for with`);
  }
  // As it stands: a number beyond 2^53 would not survive being read here.
  return text;
}

async function explain(event) {
  event?.preventDefault();
  byId('fault').textContent = '';
  byId('checked').textContent = '';
  const subject = byId('subject').value.replace(/\s+/g, '');
  try {
    const asked = request();
    const isSignature = subject.length <= SIGNATURE_LENGTH;
    const explained = await call('/v1/transactions/explain', { method: 'POST', body: isSignature ? { signature: subject } : { transaction: subject } });
    show(byId('explanation'), explained);
    byId('result').hidden = false;
    byId('result').focus();
    if (asked !== null && !isSignature) {
      byId('checked').textContent = verdict(await call('/v1/swap/check', { method: 'POST', json: `{"transaction":${JSON.stringify(subject)},"request":${asked}}` }));
    } else if (asked !== null) {
      byId('checked').textContent = 'A body is compared with a transaction in base64, not with a signature.';
    }
  } catch (error) {
    byId('fault').textContent = error.message;
  }
}

byId('ask').addEventListener('submit', explain);
const signature = new URLSearchParams(location.search).get('signature');
if (signature !== null) {
  byId('subject').value = signature;
  explain();
}
