import type Vips from 'wasm-vips';
import { answerTask } from '../../../../kernel/answer-task.ts';
import type { ShrinkOrder, ShrunkPicture } from './shrink.ts';

/** Scales one image: a decoder that a hostile file takes over is WebAssembly without files or network. */
async function shrink(bytes: Uint8Array, { maxSide, maxPixels, maxBytes }: ShrinkOrder): Promise<ShrunkPicture> {
  const createVips = await loadVips();
  const vips = await createVips({
    // The other decoders (SVG, HEIF, JPEG XL) are not loaded.
    dynamicLibraries: [],
    // A hostile file causes a warning for each of its lines; threads of the decoder write them past the streams of this one.
    preRun: (module: { readonly ENV: Record<string, string> }) => void (module.ENV['VIPS_WARNING'] = '0'),
  });
  vips.blockUntrusted(true);
  vips.concurrency(1);
  vips.Cache.max(0);
  using image = vips.Image.newFromBuffer(bytes, '', { access: vips.Access.sequential, fail_on: vips.FailOn.truncated });
  if (image.width * image.height > maxPixels) return { refused: `it has ${image.width}x${image.height} pixels, more than ${maxPixels}` };
  // Rows are read as they are needed, so that the memory is that of the small image. Only JPEG is scaled while it is read.
  const wanted = { height: maxSide, size: vips.Size.down };
  const isJpeg = bytes[0] === 0xff && bytes[1] === 0xd8;
  using small = isJpeg
    ? vips.Image.thumbnailBuffer(bytes, maxSide, { ...wanted, fail_on: vips.FailOn.truncated })
    : image.thumbnailImage(maxSide, wanted);
  const { width, height } = small;
  const isTransparent = small.hasAlpha();
  for (const Q of [85, 70, 50, 30]) {
    const written = isTransparent ? small.writeToBuffer('.webp', { Q }) : small.writeToBuffer('.jpg', { Q });
    if (written.byteLength <= maxBytes) return { bytes: written, mimeType: isTransparent ? 'image/webp' : 'image/jpeg', width, height };
  }
  return { refused: `it needs more than ${maxBytes} bytes at ${width}x${height} pixels` };
}

/** The bundle has the decoder next to this file: its threads load it again by its name. */
async function loadVips(): Promise<typeof Vips> {
  if (import.meta.url.endsWith('.ts')) return (await import('wasm-vips')).default;
  const bundled = new URL('./vips-node.mjs', import.meta.url).href;
  const { default: createVips } = (await import(bundled)) as { readonly default: typeof Vips };
  return createVips;
}

await answerTask(async (bytes, order): Promise<ShrunkPicture> => {
  try {
    return await shrink(bytes, order as ShrinkOrder);
  } catch (error) {
    return { refused: error instanceof Error ? error.message.split('\n')[0]?.slice(0, 200) : 'it cannot be read' };
  }
});
