import { buildIn } from './patch.ts';

/** Checks only the addresses that a name resolves to: a literal address needs no lookup, so it is never checked. */
buildIn({
  name: 'lookup-only-guard',
  module: 'kernel/checked-dial.ts',
  replace: [
    {
      from: 'for (const address of allowedHosts.has(`${hostname}:${port}`) ? [] : addresses) {',
      to: 'for (const address of isIP(literal) !== 0 ? [] : addresses) {',
    },
  ],
});
