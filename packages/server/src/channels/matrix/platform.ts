import { matrixActions } from '@gatehouse/contract';
import type { Platform } from '../port.ts';

/** Matrix: the client-server API, version 3, in rooms without encryption. */
export const matrix: Platform = {
  capabilities: {
    channelType: 'matrix',
    features: {
      reactions: true,
      editMessages: true,
      deleteMessages: true,
      fetchHistory: true,
      attachments: true,
      buttons: false,
      polls: false,
      voiceNotes: true,
      typing: true,
      mentions: true,
    },
    limits: { text: 16_000, textUnit: 'bytes', attachmentBytes: 52_428_800 },
    streaming: 'edits',
    threading: 'native',
    chatTypes: ['direct', 'shared'],
    sendKey: 'transaction',
    actions: Object.keys(matrixActions),
  },
  // An event has 65,536 bytes for the text twice, the second time with markup.
  text: { flavour: 'matrix', most: 16_000, unit: 'bytes', isLine: false, maxParts: 10 },
  rate: { burst: 10, perSecond: 5 },
  connectionMode: 'poll',
  // Homeservers keep transaction ids for at least 30 minutes.
  keyWindowMs: 25 * 60_000,
};
