import { discordActions } from '@gatehouse/contract';
import type { Platform } from '../port.ts';

/** Discord: REST and the gateway (API version 10). */
export const discord: Platform = {
  capabilities: {
    channelType: 'discord',
    features: {
      reactions: true,
      editMessages: true,
      deleteMessages: true,
      fetchHistory: true,
      attachments: true,
      buttons: true,
      polls: true,
      voiceNotes: true,
      typing: true,
      mentions: true,
    },
    limits: { text: 2_000, textUnit: 'utf16', attachmentBytes: 10_485_760 },
    streaming: 'edits',
    threading: 'native',
    chatTypes: ['direct', 'shared'],
    sendKey: 'nonce',
    actions: Object.keys(discordActions),
  },
  text: { flavour: 'discord', most: 2_000, unit: 'utf16', isLine: false, maxParts: 10 },
  rate: { burst: 50, perSecond: 50, perConversation: { burst: 5, perSecond: 1 } },
  connectionMode: 'socket',
  keyWindowMs: 120_000,
};
