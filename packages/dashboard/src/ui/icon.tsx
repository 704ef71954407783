/** Stroke paths on a grid of 24. */
const paths = {
  chat: 'M4 5h16v11H9l-5 4z',
  list: 'M4 6h16M4 12h16M4 18h10',
  pulse: 'M3 12h4l3-8 4 16 3-8h4',
  agent: 'M6 9h12v9H6zM12 9V5M9.5 13v1M14.5 13v1M3 12v3M21 12v3',
  key: 'M14.5 9.5a4 4 0 1 1-1.2-2.8M12 11l8 8M17 16l2-2',
  code: 'M8 7l-5 5 5 5M16 7l5 5-5 5M13.5 5l-3 14',
  plus: 'M12 5v14M5 12h14',
  search: 'M10.5 17a6.5 6.5 0 1 1 0-13 6.5 6.5 0 0 1 0 13zM15.5 15.5L20 20',
  send: 'M5 12h13M12 5l7 7-7 7',
  stop: 'M7 7h10v10H7z',
  retry: 'M4 12a8 8 0 1 0 2.6-5.9M4 4v4.5h4.5',
  clip: 'M19 11l-7.5 7.5a4.5 4.5 0 0 1-6.4-6.4L13 4.3a3 3 0 0 1 4.2 4.2l-7.6 7.7a1.5 1.5 0 0 1-2.1-2.1l7-7',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'M5 13l4.5 4.5L19 7',
  close: 'M6 6l12 12M18 6L6 18',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10.5 11v5M13.5 11v5',
  download: 'M12 4v11M7 10l5 5 5-5M5 20h14',
  pause: 'M8 5v14M16 5v14',
  play: 'M7 5l12 7-12 7z',
  menu: 'M4 7h16M4 12h16M4 17h16',
  more: 'M5 12h.5M11.75 12h.5M18.5 12h.5',
  sun: 'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6L7 7M17 17l1.4 1.4M5.6 18.4L7 17M17 7l1.4-1.4',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z',
  screen: 'M3 5h18v11H3zM9 20h6M12 16v4',
  leave: 'M14 4H5v16h9M10 12h10M16 8l4 4-4 4',
  down: 'M12 5v14M5 12l7 7 7-7',
  warning: 'M12 4l9 16H3zM12 10v4M12 17v.5',
  edit: 'M4 20h4L19 9l-4-4L4 16zM13 7l4 4',
  memory: 'M5 6c0-1.7 3.1-3 7-3s7 1.3 7 3v12c0 1.7-3.1 3-7 3s-7-1.3-7-3zM5 6c0 1.7 3.1 3 7 3s7-1.3 7-3M5 12c0 1.7 3.1 3 7 3s7-1.3 7-3',
  coin: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM15 9c-.6-1-1.7-1.5-3-1.5-1.7 0-3 .9-3 2.2 0 3 6 1.5 6 4.5 0 1.3-1.3 2.3-3 2.3-1.4 0-2.6-.6-3.2-1.7M12 5.8v1.7M12 16.5v1.7',
  info: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 11v5M12 7.8v.4',
  hand: 'M8 13V6a1.5 1.5 0 0 1 3 0v5V4.5a1.5 1.5 0 0 1 3 0V11V6a1.5 1.5 0 0 1 3 0v8a6 6 0 0 1-6 6h-.5c-2.3 0-3.5-1-4.7-2.9L3.6 13.5a1.5 1.5 0 0 1 2.4-1.7z',
  shield: 'M12 3l7 3v5c0 4.5-3 8-7 10-4-2-7-5.5-7-10V6zM9 12l2.2 2.2L15 10',
  clock: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7v5l3.5 2',
  bell: 'M6 17v-6a6 6 0 0 1 12 0v6l1.5 2h-15zM10 21h4M12 3v2',
  branch: 'M6 4v16M6 9h6a4 4 0 0 1 4 4v1M4 4h4M4 20h4M13 14h6v6h-6z',
  graph: 'M3 9h6v6H3zM15 3h6v6h-6zM15 15h6v6h-6zM9 11l6-4M9 13l6 4',
  hook: 'M12 4v9a4 4 0 1 1-8 0v-1l2.5 2M12 4h5M17 4v16M14 20h6',
  up: 'M12 19V5M5 12l7-7 7 7',
  chevron: 'M6 9l6 6 6-6',
  previous: 'M15 6l-6 6 6 6',
  next: 'M9 6l6 6-6 6',
  sliders: 'M4 7h10M18 7h2M4 17h2M10 17h10M14 4.5v5M10 14.5v5',
  folder: 'M3 6h6l2 2h10v11H3z',
  upload: 'M12 16V5M7 10l5-5 5 5M5 20h14',
  thumbUp: 'M7 11v9H4v-9zM7 11l4-8c1.5 0 2.3 1 2 2.5L12.3 9H19a1.5 1.5 0 0 1 1.5 1.8l-1.3 7A2 2 0 0 1 17.2 20H7',
  thumbDown: 'M17 13V4h3v9zM17 13l-4 8c-1.5 0-2.3-1-2-2.5l.7-3.5H5a1.5 1.5 0 0 1-1.5-1.8l1.3-7A2 2 0 0 1 6.8 4H17',
  flag: 'M5 21V4M5 5h12l-2.5 4L17 13H5',
  waterfall: 'M4 6h8M8 11h9M13 16h7M4 4v16',
  heart: 'M12 20s-7-4.6-7-10a4 4 0 0 1 7-2.6A4 4 0 0 1 19 10c0 5.4-7 10-7 10z',
  terminal: 'M3 5h18v14H3zM7 9l3 3-3 3M12 15h4',
  microphone: 'M12 15a3 3 0 0 0 3-3V6a3 3 0 0 0-6 0v6a3 3 0 0 0 3 3zM6 11v1a6 6 0 0 0 12 0v-1M12 18v3',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4',
} as const;

export type IconName = keyof typeof paths;

/** A decorative icon: its meaning is always given by the text next to it or by a label. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}

export function BrandMark() {
  return (
    <svg className="brand-mark" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <path d="M7 25V9h3.6v2.6h3V9h4.8v2.6h3V9H25v16h-5.4v-4.4a3.6 3.6 0 0 0-7.2 0V25z" />
    </svg>
  );
}
