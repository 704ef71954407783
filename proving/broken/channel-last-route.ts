import { buildIn } from './patch.ts';

/** An answer goes to where its person wrote last. */
buildIn({
  name: 'channel-last-route',
  module: 'features/channels/messages/run-message.ts',
  replace: [
    {
      from: 'const { id: workId, owner, fence } = item;',
      to: 'const { id: workId, owner, fence } = item; lastRoutes.set(work.senderId, work.to);',
    },
    {
      from: 'const written = answerOf(item, work, ended, previewId);',
      to: 'const written = answerOf(item, { ...work, to: lastRoutes.get(work.senderId) ?? work.to }, ended, previewId);',
    },
    {
      from: 'const waitMs = ({ attempts }: WorkItem)',
      to: "const lastRoutes = new Map<string, MessageWork['to']>();\nconst waitMs = ({ attempts }: WorkItem)",
    },
  ],
});
