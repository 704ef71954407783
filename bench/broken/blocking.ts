// A broken build for the harness to catch: ten times a second the event loop is blocked for BLOCK_MS. Loaded with --import before a server.
const blockMs = Number(process.env['BLOCK_MS']);
setInterval(() => {
  for (const end = performance.now() + blockMs; performance.now() < end;);
}, 100).unref();
