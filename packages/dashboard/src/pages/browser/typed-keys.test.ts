import { expect, test } from 'vitest';
import { joined, keyEvent, placeIn } from './typed-keys.ts';

const key = (name: string, held: object = {}) => keyEvent({ key: name, ctrlKey: false, altKey: false, metaKey: false, shiftKey: false, ...held });

test('letters are text, named keys and shortcuts are keys', () => {
  expect(key('ä')).toEqual({ type: 'text', text: 'ä' });
  expect(key('Enter')).toEqual({ type: 'key', key: 'Enter' });
  expect(key('ArrowLeft', { shiftKey: true })).toEqual({ type: 'key', key: 'Shift+ArrowLeft' });
  expect(key('A', { ctrlKey: true })).toEqual({ type: 'key', key: 'Control+a' });
});

test('keys that leave the picture, paste, or belong to the system are not passed on', () => {
  for (const name of ['Tab', 'Escape', 'Shift', 'F5']) expect(key(name)).toBeUndefined();
  expect(key('v', { ctrlKey: true })).toBeUndefined();
  expect(key('a', { metaKey: true })).toBeUndefined();
});

test('positions refer to the page, whatever the size of the picture', () => {
  const picture = { left: 100, top: 50, width: 640, height: 360 };
  expect(placeIn(picture, { width: 1280, height: 720 }, { clientX: 420, clientY: 230 })).toEqual({ x: 640, y: 360 });
  expect(placeIn(picture, { width: 1280, height: 720 }, { clientX: 90, clientY: 999 })).toEqual({ x: 0, y: 720 });
});

test('what is typed or scrolled in a row is one event', () => {
  const typed = ['a', 'b'].reduce<ReturnType<typeof joined>>((events, text) => joined(events, { type: 'text', text }), []);
  expect(typed).toEqual([{ type: 'text', text: 'ab' }]);
  const scrolled = joined([{ type: 'scroll', x: 1, y: 1, dx: 0, dy: 40 }], { type: 'scroll', x: 2, y: 2, dx: 0, dy: 40 });
  expect(scrolled).toEqual([{ type: 'scroll', x: 2, y: 2, dx: 0, dy: 80 }]);
  expect(joined(typed, { type: 'key', key: 'Enter' })).toHaveLength(2);
});
