import { buildIn } from './patch.ts';

/** A message is marked as being sent after it was sent. */
buildIn({
  name: 'channel-sends-first',
  module: 'features/channels/delivery/sender.ts',
  replace: [
    {
      from: 'if (part === undefined) return;',
      to: `if (part === undefined) return;
      await this.#finish({ id: part.id, bootId, is: 'retry', isFree: true, repeatUnknown: false, atMs: clock.now() }, signal);`,
    },
    {
      from: 'const { state, alert } = await db.write(finishSend, end);',
      to: `const { beginSend } = this.#deps;
        const { admits, platform } = this.#options;
        const { channelType } = platform.capabilities;
        await db.write(beginSend, { id: end.id, channelType, bootId: end.bootId, atMs: end.atMs, ageNowMs: end.atMs, admits });
        const { state, alert } = await db.write(finishSend, end);`,
    },
  ],
});
