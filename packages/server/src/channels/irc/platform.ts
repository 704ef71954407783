import { ircActions } from '@gatehouse/contract';
import type { Platform } from '../port.ts';

/** IRC (RFC 1459) with the capabilities of IRCv3 that a server offers. */
export const irc: Platform = {
  capabilities: {
    channelType: 'irc',
    features: {
      reactions: false,
      editMessages: false,
      deleteMessages: false,
      fetchHistory: false,
      attachments: false,
      buttons: false,
      polls: false,
      voiceNotes: false,
      typing: false,
      mentions: true,
    },
    limits: { text: 400, textUnit: 'bytes', attachmentBytes: 0 },
    streaming: 'none',
    threading: 'none',
    chatTypes: ['direct', 'shared'],
    sendKey: 'label',
    actions: Object.keys(ircActions),
  },
  text: { flavour: 'irc', most: 380, unit: 'bytes', isLine: true, maxParts: 12 },
  rate: { burst: 4, perSecond: 1 },
  connectionMode: 'socket',
};
