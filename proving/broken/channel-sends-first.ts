import { buildIn } from './patch.ts';

/** A message is marked as being sent after it was sent. */
const begin = 'await db.write(beginSend, { id: part.id, bootId, atMs: clock.now() })';
buildIn({
  name: 'channel-sends-first',
  module: 'features/channels/delivery/sender.ts',
  replace: [
    { from: `if (signal.aborted || !(${begin})) return;`, to: 'if (signal.aborted) return;' },
    {
      from: 'await this.#finish({ id: part.id, bootId, ...end, atMs: clock.now() }, signal);',
      to: `${begin}; await this.#finish({ id: part.id, bootId, ...end, atMs: clock.now() }, signal);`,
    },
  ],
});
