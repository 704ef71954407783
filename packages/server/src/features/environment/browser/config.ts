import { once } from '@gatehouse/contract';
import * as z from 'zod';

const isOrigin = (text: string): boolean => {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.origin === text;
};

const Secret = once(() =>
  z.strictObject({
    origins: z
      .array(z.string().max(300).refine(isOrigin, 'expected an origin such as https://shop.example, without a path'))
      .min(1)
      .max(20)
      .describe('Origins of the pages (of the frame, where a field is in one) in which it may be typed.'),
  }),
);

/** Section `browser`. */
export const BrowserConfig = once(() =>
  z.strictObject({
    enabled: z.boolean().default(true).describe('Whether browsers start at all, and agents whose tools allow it are offered `browser`.'),
    program: z
      .string()
      .max(1024)
      .regex(/^\//, 'expected an absolute path')
      .optional()
      .describe('Chromium or a browser made of it; otherwise the first one that is installed: Chromium, Google Chrome, Brave, Microsoft Edge.'),
    maxBrowsers: z.int().min(1).max(32).default(3).describe('Browsers at once; each agent has at most one.'),
    maxTabs: z.int().min(1).max(100).default(20).describe('Tabs of a browser at once.'),
    memoryMb: z.int().min(512).max(65_536).default(1536).describe('Memory of a browser with all its processes, in MiB; with more it is ended.'),
    idleMs: z.int().min(10_000).max(86_400_000).default(300_000).describe('Milliseconds after which a browser that nobody used is ended.'),
    timeoutMs: z.int().min(1000).max(300_000).default(30_000).describe('Milliseconds that opening a page may take.'),
    viewport: z
      .strictObject({
        width: z.int().min(200).max(3840).default(1280),
        height: z.int().min(200).max(2160).default(720),
      })
      .prefault({})
      .describe('Size of a page in CSS pixels.'),
    snapshotMaxChars: z.int().min(200).max(200_000).default(30_000).describe('Characters of a snapshot, unless a call names another limit.'),
    maxDownloadBytes: z.int().min(1024).max(1_073_741_824).default(52_428_800).describe('Largest file that a page may download into the workspace.'),
    recording: z
      .strictObject({
        enabled: z.boolean().default(true).describe('Whether steps are recorded, with small pictures of the pages.'),
        maxMb: z.int().min(1).max(102_400).default(256).describe('Space for all recordings in MiB; the oldest are deleted beyond it.'),
      })
      .prefault({})
      .describe('What was done in browsers, to be looked at afterwards; `retention.browserRecordingDays` says how long it is kept.'),
    secrets: z
      .record(z.string().min(1).max(128), Secret())
      .default({})
      .describe('Stored secrets (or variables of the environment) that agents may type by name without seeing them, and where.'),
  }),
);
export type BrowserConfig = z.output<ReturnType<typeof BrowserConfig>>;
