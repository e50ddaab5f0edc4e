// Gives what Swagger UI draws the names and the places for the keyboard that it leaves out. It draws a part anew without saying
// so, and each change of the page is looked through. What a part was given stays: Swagger UI changes what it wrote itself.
const named = (text) => (part) => part.setAttribute("aria-label", text(part));
const MENDS = [
  ["tr[data-param-name] select", named((part) => part.closest("tr").dataset.paramName)],
  [".body-param__text", named(() => "Body of the request")],
  [".copy-to-clipboard button", named(() => "Copy")],
  [".close-modal", named(() => "Close")],
  // Who works by voice says what stands on a button; here it has another name.
  [".modal-btn[aria-label]", named((part) => part.textContent)],
  // What is wider than its place is to be scrolled by the keyboard as well.
  ["pre.microlight", (part) => part.setAttribute("tabindex", "0")],
  // A link within a button does what the button does, and is one more stop on the way.
  [".opblock-summary-control a[href]", (part) => part.removeAttribute("href")],
];

const reference = document.getElementById("reference");
new MutationObserver(() => {
  for (const [selector, mend] of MENDS) for (const part of reference.querySelectorAll(selector)) mend(part);
}).observe(reference, { childList: true, subtree: true });
