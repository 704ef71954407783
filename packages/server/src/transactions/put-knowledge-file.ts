import { insertMemory } from '../features/knowledge/memory/entries/store.ts';
import { addKnowledgePassage, replaceKnowledgeFile, type PutKnowledgeFile } from '../features/knowledge/sources/store.ts';
import { operation } from '../kernel/db/operation.ts';

/** Replaces a file of a source with all of its passages, which are entries of the search index: a search sees the earlier text or this one. */
export const putKnowledgeFile = operation('knowledge.put', async (tx, { file, owner, trusted, passages }: PutKnowledgeFile): Promise<void> => {
  await replaceKnowledgeFile(tx, file);
  for (const [position, { id, content, part, label }] of passages.entries()) {
    await insertMemory(tx, {
      id,
      agentId: owner,
      principalId: '*',
      content,
      memoryType: 'semantic',
      trustLevel: trusted ? 'learned' : 'external',
      taintLevel: trusted ? 'clean' : 'wrapped',
      sourceWho: 'knowledge',
      sourceChannel: null,
      conversationRef: null,
      sessionKey: null,
      tags: JSON.stringify([file.source]),
      createdAtMs: file.indexedAtMs,
      expiresAtMs: null,
      confidence: null,
      pinned: 0,
      cites: [],
    });
    await addKnowledgePassage(tx, { memoryId: id, fileId: file.id, position, part, label });
  }
});
