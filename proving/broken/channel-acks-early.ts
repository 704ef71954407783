import { buildIn } from './patch.ts';

/** A message is acknowledged to its platform before it is stored. */
buildIn({
  name: 'channel-acks-early',
  module: 'features/channels/instances/instance.ts',
  replace: [
    {
      from: 'const dropped = await take({ instance: this.name, channelType: this.config.type }, received, reached);',
      to: 'const dropped: string[] = []; setTimeout(() => void take({ instance: this.name, channelType: this.config.type }, received, reached), 300);',
    },
  ],
});
