import { buildIn } from './patch.ts';

/** A message is marked as being sent after it was sent. */
const finish = 'await this.#finish({ id: part.id, bootId, ...end, atMs: clock.now() }, signal);';
buildIn({
  name: 'channel-sends-first',
  module: 'features/channels/delivery/sender.ts',
  replace: [
    {
      from: 'if (part === undefined) return;',
      to: `if (part === undefined) return;
      await this.#finish({ id: part.id, bootId, is: 'retry', isFree: true, atMs: clock.now() }, signal);`,
    },
    { from: finish, to: `await db.write(beginSend, { id: part.id, bootId, atMs: clock.now() }); ${finish}` },
  ],
});
