// Colours of both themes. Okabe and Ito's palette, which colour-blind people can tell apart; lines differ in dash, too.

const STORED_THEME = "ivypy-theme";
const COLOURS = {
  light: { blue: "#0072b2", orange: "#c56f00", green: "#00785a", red: "#c04a00", purple: "#a04a7d", grey: "#666f7a" },
  dark: { blue: "#56b4e9", orange: "#e69f00", green: "#2fbf93", red: "#ff8a4c", purple: "#dd95bd", grey: "#9aa4b2" },
};
const PAPER = {
  light: { ink: "#1c2430", grid: "#dfe3e8", shade: "rgba(90,100,115,0.13)" },
  dark: { ink: "#d8dee7", grid: "#333c48", shade: "rgba(170,180,195,0.13)" },
};

let chosenTheme = null;

function stored() {
  try {
    return localStorage.getItem(STORED_THEME) ?? chosenTheme;
  } catch {
    return chosenTheme; // a page that was opened from a file may have no storage
  }
}

function themeName() {
  return stored() ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

export function colours() {
  return { ...COLOURS[themeName()], ...PAPER[themeName()] };
}

/** Show the chosen theme, and call `onchange` whenever it is another. Returns the button's action. */
export function watchTheme(onchange) {
  const show = () => {
    document.documentElement.dataset.theme = themeName();
    onchange();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
  return () => {
    chosenTheme = themeName() === "dark" ? "light" : "dark";
    try {
      localStorage.setItem(STORED_THEME, chosenTheme);
    } catch {
      // kept for as long as the page is open
    }
    show();
  };
}
