/** A small bar of a share from 0 to 1; what it shows stands in words beside it. */
export function ShareBar({ share, look = 'plain' }: { readonly share: number; readonly look?: 'plain' | 'second' | 'third' }) {
  const whole = Math.min(1, Math.max(0, share));
  return (
    <svg className={`share-bar ${look}`} viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect className="share-room" width="100" height="6" />
      <rect className="share-part" width={whole * 100} height="6" />
    </svg>
  );
}
