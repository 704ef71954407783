import { expect, test } from 'vitest';
import { makesFiles, pathsOf } from './made-files.ts';

test('finds the file in the sentence of a tool, and none in text of a page', () => {
  expect(pathsOf('The image is in the workspace: media/images/img-1.png')).toEqual(['media/images/img-1.png']);
  expect(pathsOf('The picture is in the workspace: media/browser/p-1.jpg (800x600)')).toEqual(['media/browser/p-1.jpg']);
  expect(pathsOf('The speech is in the workspace: media/tts/tts-1.mp3 (audio/mpeg, 10 bytes)')).toEqual(['media/tts/tts-1.mp3']);
  expect(pathsOf('<<outside>> The image is in the workspace: media/images/img-1.png')).toEqual([]);
  expect(pathsOf('The image is in the workspace: media/../secret.png')).toEqual([]);
  expect([makesFiles('image_generate'), makesFiles('read'), makesFiles(undefined)]).toEqual([true, false, false]);
});
