import type { HttpCall } from '../http-call.ts';

/** Writes what the dashboard sends into the page, once: the content replaces the listener too. */
const page = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Content</title><script>
addEventListener('message', (event) => {
  if (event.source !== parent) return;
  document.open();
  document.write(event.data);
  document.close();
});
</script></html>
`;

/**
 * The page may run what it is given, because it can do nothing with it: its origin is opaque, so that it reaches neither the dashboard
 * nor its storage, and it may not use the network. The policy of the dashboard lets a frame lead to no other host.
 */
const headers: Readonly<Record<string, string>> = {
  'cache-control': 'no-cache',
  'content-security-policy':
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; frame-ancestors 'self'",
  'content-type': 'text/html; charset=utf-8',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()',
  'referrer-policy': 'no-referrer',
};

/** `GET /frame`: needs no token, because a frame cannot send one and there is nothing to see. */
export function sendFrame(call: HttpCall): void {
  for (const [name, value] of Object.entries(headers)) call.setHeader(name, value);
  call.setHeader('content-length', String(Buffer.byteLength(page)));
  call.writeHead(200);
  // Node omits the body of a response to HEAD.
  call.outgoing.end(page);
}
