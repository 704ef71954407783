import { createStepClock } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { createPageReader } from './page-reader.ts';

test('pages that keep the parser busy release their threads after a while', async () => {
  const clock = createStepClock();
  const read = createPageReader(clock, new URL('data:text/javascript,for(;;);'));
  const { signal } = new AbortController();
  const reading = Promise.all(Array.from({ length: 3 }, () => read({ html: '<p>x', url: 'https://a.example/' }, signal).catch(String)));
  const ended = () => {
    clock.advance(5000);
    return Promise.race([reading, Promise.resolve('reads')]);
  };
  await expect.poll(ended).toEqual(Array.from({ length: 3 }, () => expect.stringContaining('not read within 10000 ms')));
});
