import { telegramActions } from '@gatehouse/contract';
import type { Platform } from '../port.ts';

/** Telegram, over its Bot API by long polling. */
export const telegram: Platform = {
  capabilities: {
    channelType: 'telegram',
    features: {
      reactions: true,
      editMessages: true,
      deleteMessages: true,
      fetchHistory: false,
      attachments: true,
      buttons: true,
      polls: true,
      voiceNotes: true,
      typing: true,
      mentions: true,
    },
    limits: { text: 4_096, textUnit: 'utf16', attachmentBytes: 50_000_000 },
    streaming: 'edits',
    threading: 'native',
    chatTypes: ['direct', 'shared'],
    sendKey: 'none',
    actions: Object.keys(telegramActions),
  },
  text: { flavour: 'telegram', most: 4_096, unit: 'utf16', isLine: false, maxParts: 10 },
  rate: { burst: 30, perSecond: 30, perConversation: { burst: 3, perSecond: 1 } },
  connectionMode: 'poll',
};
