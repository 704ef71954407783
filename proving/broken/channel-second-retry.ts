import { buildIn } from './patch.ts';

/** A send with an unknown end is repeated at once. */
buildIn({
  name: 'channel-second-retry',
  module: 'features/channels/delivery/sender.ts',
  replace: [
    {
      from: 'return this.#withTime(signal, (late) => this.#options.adapter.send(outgoing, { key: keyOf(part), signal: late }));',
      to: `const send = () => this.#withTime(signal, (late) => this.#options.adapter.send(outgoing, { key: keyOf(part), signal: late }));
    const first = await send();
    return first.is === 'ambiguous' ? send() : first;`,
    },
  ],
});
