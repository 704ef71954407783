import { slackActions } from '@gatehouse/contract';
import type { Platform } from '../port.ts';

/** Slack, over socket mode and the Web API. */
export const slack: Platform = {
  capabilities: {
    channelType: 'slack',
    features: {
      reactions: true,
      editMessages: true,
      deleteMessages: true,
      fetchHistory: true,
      attachments: true,
      buttons: true,
      polls: false,
      voiceNotes: false,
      typing: false,
      mentions: true,
    },
    limits: { text: 4_000, textUnit: 'utf16', attachmentBytes: 1_073_741_824 },
    streaming: 'edits',
    threading: 'native',
    chatTypes: ['direct', 'shared'],
    sendKey: 'lookup',
    actions: Object.keys(slackActions),
  },
  text: { flavour: 'slack', most: 3_900, unit: 'utf16', isLine: false, maxParts: 10 },
  rate: { burst: 20, perSecond: 20, perConversation: { burst: 3, perSecond: 1 } },
  connectionMode: 'socket',
};
