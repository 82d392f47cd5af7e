//! Colours, sizes and fonts of the window, light and dark; how a speaker looks.
//!
//! Speakers are told apart by three things, so that no one depends on seeing colours: the Okabe-Ito colours, which
//! people with any common colour blindness can tell apart, a hatching for every further eight, and a letter.
//! Names in other scripts are drawn with the system's fonts, which eframe looks up by itself.

use eframe::egui::{
    Color32, Context, CornerRadius, FontFamily, FontId, Margin, Stroke, Style, TextStyle, Theme,
    ThemePreference, Visuals, vec2,
};

/// Okabe and Ito's eight colours, in an order in which neighbours differ much. Their black is a grey, which shows on
/// both backgrounds.
const OKABE_ITO: [Color32; 8] = [
    Color32::from_rgb(0, 114, 178),
    Color32::from_rgb(230, 159, 0),
    Color32::from_rgb(0, 158, 115),
    Color32::from_rgb(204, 121, 167),
    Color32::from_rgb(86, 180, 233),
    Color32::from_rgb(213, 94, 0),
    Color32::from_rgb(240, 228, 66),
    Color32::from_rgb(136, 136, 136),
];

/// Least contrast of text to what is behind it (WCAG 2.2, 1.4.3).
pub const TEXT_CONTRAST: f32 = 4.5;

/// Least contrast of a shape to what is behind it (WCAG 2.2, 1.4.11).
pub const SHAPE_CONTRAST: f32 = 3.0;

/// How a turn is filled beside its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// Colour alone.
    Plain,
    /// Stripes that rise to the right.
    Rising,
    /// Stripes that fall to the right.
    Falling,
    /// Both.
    Crossed,
}

/// How a speaker looks; the same for the same number everywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeakerLook {
    /// Fill of turns.
    pub fill: Color32,
    /// Stripes on the fill.
    pub stripe: Color32,
    /// Text on the fill or the stripes, at [`TEXT_CONTRAST`].
    pub text: Color32,
    /// Outlines and lines in the speaker's colour, at [`SHAPE_CONTRAST`] to the [`surface`].
    pub line: Color32,
    /// Stripes or none.
    pub pattern: Pattern,
    /// A to Z, then AA, AB, …
    pub letter: String,
}

/// The look of the speaker with the number `id`.
pub fn speaker(id: usize, dark: bool) -> SpeakerLook {
    let fill = OKABE_ITO[id % OKABE_ITO.len()];
    let (ink, paper) = (Color32::from_gray(16), Color32::WHITE);
    let text = if contrast(ink, fill) >= contrast(paper, fill) { ink } else { paper };
    // Away from the text, so that stripes never make it harder to read.
    let away = if text == ink { Color32::WHITE } else { Color32::BLACK };
    let pattern =
        [Pattern::Plain, Pattern::Rising, Pattern::Falling, Pattern::Crossed][id / OKABE_ITO.len() % 4];
    SpeakerLook {
        fill: towards_contrast(fill, text, TEXT_CONTRAST),
        stripe: towards_contrast(fill, text, TEXT_CONTRAST).lerp_to_gamma(away, 0.45),
        text,
        line: towards_contrast(fill, surface(dark), SHAPE_CONTRAST),
        pattern,
        letter: letter(id),
    }
}

/// A to Z for 0 to 25, then AA, AB, …
fn letter(mut id: usize) -> String {
    let mut letters = Vec::new();
    loop {
        letters.push(char::from(b'A' + (id % 26) as u8));
        if id < 26 {
            return letters.iter().rev().collect();
        }
        id = id / 26 - 1;
    }
}

/// `color`, made lighter or darker until it has at least the contrast `least` to `behind`.
fn towards_contrast(color: Color32, behind: Color32, least: f32) -> Color32 {
    let target = if luminance(behind) > 0.18 { Color32::BLACK } else { Color32::WHITE };
    let steps = (0..=50).map(|step| color.lerp_to_gamma(target, step as f32 / 50.0));
    steps.into_iter().find(|&c| contrast(c, behind) >= least).unwrap_or(target)
}

/// Contrast of two opaque colours by WCAG 2.2: 1 (none) to 21.
pub fn contrast(a: Color32, b: Color32) -> f32 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

fn luminance(color: Color32) -> f32 {
    let linear = |channel: u8| {
        let c = f32::from(channel) / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(color.r()) + 0.7152 * linear(color.g()) + 0.0722 * linear(color.b())
}

/// What lies behind turns and waveforms.
pub fn surface(dark: bool) -> Color32 {
    if dark { Color32::from_rgb(22, 24, 28) } else { Color32::WHITE }
}

/// Colours of the window beside those of egui's own widgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colors {
    /// Behind turns and waveforms.
    pub surface: Color32,
    /// Every second lane.
    pub surface_alternate: Color32,
    /// Ruler and lane heads.
    pub panel: Color32,
    /// Hairlines between parts.
    pub line: Color32,
    /// Marks of minutes and seconds behind the lanes.
    pub grid: Color32,
    /// Text.
    pub text: Color32,
    /// Text of less weight, still at [`TEXT_CONTRAST`].
    pub text_weak: Color32,
    /// Waveform where nobody speaks.
    pub wave: Color32,
    /// What is selected, focused or dragged.
    pub accent: Color32,
    /// The play head.
    pub play_head: Color32,
    /// Stretches in which several people speak.
    pub overlap: Color32,
    /// Speech that nobody was credited with.
    pub missed: Color32,
    /// Silence that was taken for speech.
    pub false_alarm: Color32,
    /// Speech of another speaker.
    pub confusion: Color32,
}

/// The colours for a dark or a light window.
pub fn colors(dark: bool) -> Colors {
    if dark {
        Colors {
            surface: surface(true),
            surface_alternate: Color32::from_rgb(27, 29, 34),
            panel: Color32::from_rgb(33, 36, 41),
            line: Color32::from_rgb(58, 62, 69),
            grid: Color32::from_rgb(38, 41, 47),
            text: Color32::from_rgb(228, 230, 235),
            text_weak: Color32::from_rgb(160, 165, 174),
            wave: Color32::from_rgb(112, 118, 128),
            accent: Color32::from_rgb(120, 180, 255),
            play_head: Color32::from_rgb(255, 107, 107),
            overlap: Color32::from_rgb(226, 226, 232),
            missed: Color32::from_rgb(255, 107, 107),
            false_alarm: Color32::from_rgb(255, 196, 80),
            confusion: Color32::from_rgb(196, 150, 255),
        }
    } else {
        Colors {
            surface: surface(false),
            surface_alternate: Color32::from_rgb(247, 248, 250),
            panel: Color32::from_rgb(241, 243, 246),
            line: Color32::from_rgb(206, 210, 217),
            grid: Color32::from_rgb(232, 235, 239),
            text: Color32::from_rgb(28, 31, 36),
            text_weak: Color32::from_rgb(88, 94, 104),
            wave: Color32::from_rgb(128, 134, 144),
            accent: Color32::from_rgb(0, 95, 204),
            play_head: Color32::from_rgb(208, 32, 44),
            overlap: Color32::from_rgb(66, 70, 78),
            missed: Color32::from_rgb(200, 30, 42),
            false_alarm: Color32::from_rgb(156, 100, 0),
            confusion: Color32::from_rgb(112, 60, 190),
        }
    }
}

/// Sets the look of the whole window; it follows the system's choice of light or dark until told otherwise.
pub fn install(context: &Context) {
    for theme in [Theme::Dark, Theme::Light] {
        context.style_mut_of(theme, |style| apply(style, theme == Theme::Dark));
    }
    context.set_theme(ThemePreference::System);
}

fn apply(style: &mut Style, dark: bool) {
    let font = |size| FontId::new(size, FontFamily::Proportional);
    style.text_styles = [
        (TextStyle::Small, font(11.5)),
        (TextStyle::Body, font(14.0)),
        (TextStyle::Button, font(14.0)),
        (TextStyle::Heading, font(19.0)),
        (TextStyle::Monospace, FontId::new(13.0, FontFamily::Monospace)),
    ]
    .into();
    let spacing = &mut style.spacing;
    spacing.item_spacing = vec2(8.0, 6.0);
    spacing.button_padding = vec2(10.0, 5.0);
    spacing.interact_size = vec2(40.0, 28.0);
    spacing.menu_margin = Margin::same(6);
    spacing.window_margin = Margin::same(14);
    spacing.tooltip_width = 360.0;
    style.visuals = visuals(dark);
}

fn visuals(dark: bool) -> Visuals {
    let colors = colors(dark);
    let mut visuals = if dark { Visuals::dark() } else { Visuals::light() };
    visuals.panel_fill = if dark { Color32::from_rgb(27, 29, 34) } else { Color32::from_rgb(250, 250, 252) };
    visuals.window_fill = visuals.panel_fill;
    visuals.window_stroke = Stroke::new(1.0, colors.line);
    visuals.extreme_bg_color = colors.surface;
    visuals.faint_bg_color = colors.surface_alternate;
    visuals.weak_text_color = Some(colors.text_weak);
    visuals.hyperlink_color = colors.accent;
    visuals.error_fg_color = colors.missed;
    visuals.warn_fg_color = colors.false_alarm;
    visuals.selection.bg_fill =
        if dark { Color32::from_rgb(26, 76, 140) } else { Color32::from_rgb(196, 221, 255) };
    visuals.selection.stroke =
        Stroke::new(1.0, if dark { Color32::from_rgb(222, 236, 255) } else { Color32::from_rgb(0, 54, 128) });
    visuals.widgets.noninteractive.bg_stroke = Stroke::new(1.0, colors.line);
    visuals.widgets.noninteractive.fg_stroke = Stroke::new(1.0, colors.text);
    visuals.widgets.inactive.fg_stroke = Stroke::new(1.0, colors.text);
    visuals.widgets.inactive.weak_bg_fill =
        if dark { Color32::from_rgb(52, 56, 63) } else { Color32::from_rgb(230, 233, 238) };
    visuals.widgets.hovered.weak_bg_fill =
        if dark { Color32::from_rgb(66, 71, 80) } else { Color32::from_rgb(218, 223, 231) };
    for widget in [
        &mut visuals.widgets.noninteractive,
        &mut visuals.widgets.inactive,
        &mut visuals.widgets.hovered,
        &mut visuals.widgets.active,
        &mut visuals.widgets.open,
    ] {
        widget.corner_radius = CornerRadius::same(5);
    }
    visuals
}
