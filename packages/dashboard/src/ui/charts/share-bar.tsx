/** Draws a small bar for a share from 0 to 1; the value is next to it as text. */
export function ShareBar({ share, look = 'plain' }: { readonly share: number; readonly look?: 'plain' | 'second' | 'third' }) {
  const whole = Math.min(1, Math.max(0, share));
  return (
    <svg className={`share-bar ${look}`} viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect className="share-room" width="100" height="6" />
      <rect className="share-part" width={whole * 100} height="6" />
    </svg>
  );
}
