import { expect, test } from 'vitest';
import { createStepClock } from '@gatehouse/testkit';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { DocumentText } from './api.ts';
import { createDocumentMethods } from './methods.ts';
import { joinParts } from './shown.ts';
import { createDocumentSources } from './sources.ts';

const call: CallContext = {
  identity: { principalId: 'ada', tokenId: 'ada', scopes: ['rpc'] },
  traceId: 'trace',
  requestId: 'request',
  signal: new AbortController().signal,
  transport: 'http',
};

test('few documents are in memory at once, however many are asked for', async () => {
  const release = Promise.withResolvers<void>();
  let loaded = 0;
  let most = 0;
  const sources = createDocumentSources({
    media: {
      find: (mediaId) => Promise.resolve({ mediaId, contentType: 'text/plain', size: 4, savedAt: 1 }),
      read() {
        loaded += 1;
        most = Math.max(most, loaded);
        return Promise.resolve(Buffer.from('text'));
      },
    },
    egress: { request: () => Promise.reject(new Error('not used')) },
    isInternal: () => false,
  });
  const document: DocumentText = { mimeType: 'text/plain', parts: [{ label: '', text: 'text' }], truncated: false, notes: [] };
  const api = {
    async extract() {
      await release.promise;
      loaded -= 1;
      return document;
    },
    join: joinParts,
    show: () => '',
    reads: () => true,
    maxFileBytes: 100,
  };
  const methods = createDocumentMethods({ api, sources, clock: createStepClock() });
  const answers = Array.from({ length: 40 }, (_, n) => methods['media.extract_document']({ attachment_url: `md_${n}.txt` }, call));
  await expect.poll(() => loaded).toBeGreaterThan(0);
  release.resolve();
  expect((await Promise.all(answers)).map(({ text }) => text)).toEqual(Array.from({ length: 40 }, () => 'text'));
  expect(most).toBeLessThanOrEqual(8);
});
