import { buildIn } from './patch.ts';

/** How far a channel has received is stored before the messages up to there. */
buildIn({
  name: 'channel-position-first',
  module: 'features/channels/instances/instance.ts',
  replace: [
    {
      from: 'const dropped = await take({ instance: this.name, channelType: this.config.type }, received, reached);',
      to: `const from = { instance: this.name, channelType: this.config.type };
        await take(from, [], reached);
        const dropped = await take(from, received);`,
    },
  ],
});
