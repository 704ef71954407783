import { buildIn } from './patch.ts';

/** Revoking a token closes only streams and sockets: unstreamed turns continue. */
buildIn({
  name: 'revoke-closes-streams',
  module: 'wiring/stops.ts',
  replace: [
    {
      from: "const roots = turns.stop({ tokenId }, new AppError('unauthenticated', 'The token was revoked or has expired'));",
      to: 'const roots: string[] = [];',
    },
  ],
});
buildIn({
  name: 'revoke-closes-streams',
  module: 'gateway/open-calls.ts',
  replace: [{ from: 'if (isGone && !call.outgoing.headersSent) call.abort(ended);', to: 'if (isGone && !call.outgoing.headersSent) continue;' }],
});
