// Explain: what any transaction does, what it may cost, whether it has the shape of what Sluice builds, and whether Sluice builds it
// for a body.

import { byId, call } from './page.js';
import { show, verdict } from './explanation.js';
import { shapeOf } from './shape.js';

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

// The class of the page's style for what fits, does not, and cannot be told.
const MARKS = new Map([[true, 'well'], [false, 'wrong'], [null, 'soft']]);

function showShape(explained) {
  const { fits, says } = shapeOf(explained);
  byId('shape').textContent = says;
  byId('shape').className = MARKS.get(fits);
}

async function explain(event) {
  event?.preventDefault();
  for (const id of ['fault', 'shape', 'checked']) byId(id).textContent = '';
  const subject = byId('subject').value.replace(/\s+/g, '');
  try {
    const asked = request();
    const isSignature = subject.length <= SIGNATURE_LENGTH;
    const explained = await call('/v1/transactions/explain', { method: 'POST', body: isSignature ? { signature: subject } : { transaction: subject } });
    show(byId('explanation'), explained);
    showShape(explained);
    byId('result').hidden = false;
    byId('result').focus();
    if (asked !== null && !isSignature) {
      byId('checked').textContent = verdict(await call('/v1/swap/check', { method: 'POST', json: `{"transaction":${JSON.stringify(subject)},"request":${asked}}` }));
    } else if (asked !== null) {
      byId('checked').textContent = 'A body is compared with the bytes of a transaction: paste it in base64. For one that has landed little would follow: token accounts that it made are there now, and are not made again.';
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
