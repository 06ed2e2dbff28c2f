"""The weights of `ullage.tokens.estimate`, written by ``lab.bench.fit_families``."""

__all__ = ["WEIGHTS"]

# fmt: off
WEIGHTS = {
    "claude-v3": (
        "2><{900000000O7{{R300000000000000000000001f~NKygYg07DE^00005Dj_H!866`T6966nE(`zwPc&{8D*#"
        "F?A1?pNK28P!F#iB33;>8+r2zk2asUhf044wcBLEBo01-"
        "t}7Yzph05ux{02vbw9|e5}PyiAD0000000000JOBUy00000000000000000000001Wd000000000000008000004"
        "FEC#1^@s6000000000000010q$2<S|62b5|Nm4^7Amd(07z40bpRW#{{R30oO4ZRs)NM;nuq`Yo;Uyi{{R300000"
        "000000000000AYkPZoYJ>$Dp@Mp#T5?TMPgI5!oLlf{VD!s{jB1wEztkM6g=ko6ESQqDcS%bpRq!@zq;ccCe_#pa"
        "1{>RzP&A0J}ub|CexW+%y0H6+UP#Zw8T0!<k)sKmPy#As8MALCXq++jw12O#lD@0ROV@d+YxI{{Xb&l<fcjqyIes"
        "9svJt1Iv$|{{R30EL%u+eTIkSrUw83b^rhX0Af5rb%Z!zRR9eDKU4q!J7pp}r_yDvk^lezB9H(8Dr7G-"
        "2H`mx;{X6303HAU000000000000000000dD|Nk}sasY|{!T<mT`vL#}{{RdB_iq5P0PO&D#{d8T"
    ),
    "claude-v4.8": (
        "2><{900000000pG000000000000000000000000004D$vT-"
        "A0&09q$S6$t<#8W$5C3ltR(4FDbw84~~il0rNjLIFe^Q#;?VRY@y5B&q;F6970ThXDVJw*a0105k#~Is^b0038#3"
        "BMuP&05dWP1t$OiFczo`UjUx~0000000000JOBUy0000000000000000000N002w?00000000000006200000000"
        "#L0000000000000000001ltwH|)|LXq$|NmG{B^Cbv07y|_bpSP_{{R30o^nuTrH-"
        ")rq<#PYpCkYP{{R300000000000000000C8v>i$7a+*AJ`wZU6uPGbjKhv)=#%-"
        "gdaOF8}}ll@=Ce+>=$g@7C^SL@NLQG7B7;;G8`GUyyvGTL1t6JOD%%PJt14;9q?*kP!d?JaL0uk`a?y<fuO4t^WW"
        "3A`SpAoa_pA_KHSN6951J71_)Gzv2G~{{Wh>PR;-Td;d!S03H8I0RN+t{{R30LT56vxRG|a{}})z|Fr-BS56T&s-"
        "K|S0RJ)o5heft8C(-+?c0Q^uK-m60Ga>*QGH>=n3;0`{}o+o0MGyc000000000000000000XB|NjL5nE-"
        "nK%>V#${|5j7a6uCP|8W4z{{R4`F8}}l"
    ),
    "gemini": (
        "q5uE@0000000030000000000000000000000000005<>(CN3NY03-"
        "`n1poj500IR70sssH1ONj79}xfzMGG++8UQdfBq0BMD?kYoDE}xY6aZE#S0jcdR{#J601*NJ000UL01HY$3JnDS0"
        "0saA0R{^p8URxOJpc~?000000000@QUHMf04V?f0NO|_007A2!npv702BWJJpkXi6dDR6aEt(=o4YD0FaQvf6gnO"
        ">8F4xQ01W^R008|RKU)9*|1bam(p&&a6#xJL03|#J0001A{{R30003tI0000)03PlD0094D{{R30000000000000"
        "0000F019ePS%vu$zuxXaE2JcmV(a0Gk(<EwHVn&;S4cl>iJ18LJcjh{M6p#V-"
        "H=hyV^FfP4|#Kex8u%m4rYY$Qs40HG7_l$M`uz5f6Jj;F$<n4RGB+r;qy%-"
        ";Y2aBp8%Mr{WF%~+$kivR!s0ONF+TS-"
        "s>>_)Qln0x>L;{VV`WKI9q0RO<t{{R300DD?%Gj1QwSqlIFkKF(O0C#3xc}fa9DF6)s0RR918D~T|W;+VzIRF3w0"
        "d@cY3s^!>Cr%4hdH?_^0000000000000000000000000|J48-JOCc(|7ibfy#N3J00000000000Pg?*Q~&?~"
    ),
    "o200k_base": (
        "RsaA10000000030000000000000000000000000003-kfJ3Igg00ROv90LFV6$}y-"
        "4ha$m3jja>F9<jQC=4zY2LK-sFB|`eJ4OQr4gVq$5dcdoE+nBpN&p!E01^rS1po#M018Y-"
        "5fumk022)Y01Ff)4gg~cSO5(G015{H0001Xg){#E096100I+^q008ukYX1P*05ksp2moR1CIBS>RCWNeq5n|;1^@"
        "t{6e=Ma09I81SO5$F004L{M<)OP{{R30|NjU_Bme*a00=7p0002r{{R30005v60000d02bi@0093;{{R30000000"
        "0000000000Fih(Xg2_c*0ZongC_t0O#lD@47mbuA5u`We*gdgsQ?ZUB%cQVi-TFamn8rIeE<|JevSaV0AOa|mH+?"
        "%kV`;y2*m-"
        "_k1{S`l==Vws&|uVb{oH?`p~MvzW)FKhI4FbUw{PqYRrwdkpKVy0RN1&c9Z}L000$T2gCpXv;U$mE=8rL3(sbC`T"
        "zg`Ju)RY09HQD;{srViYx#CB~L{?l`{Ze&{zim9smFULnagpZHpb`+z<d8Gr#}<2R0`&N=5(+^Z*w@0AT<C00000"
        "000000000000000|IPpnIsgEa|K{}oH~;_u0000000000RsaA1!T<mO"
    ),
    "cl100k_base": (
        "rvLx|0000000030000000000000000000000000006PE$Icfj}01g5^9s>XX7!VW@4i6Lx4gg62G73o$6%<7s762"
        "DDKr8>3E=~gl7XKzC8vtH5P+zM=QUDbI02KoO2LKHZ010SL5El*r04Wjy01qT67XW$@VE_#P03!e~0001$zX1Lr0"
        "BisN0ROd~8UX*H^MzUe008L#QUJom01+4~oyB$ka^zkBXFgf~Z$dz-"
        "1OJ);uq*%o0000iI;sEw|3&~m&i@F^0|2Ia|Ns9&1OSHr{{R30bgf+p000000AO<f00930{{R300000000000000"
        "000EliLR7VtL*QJ&-UJw8PYybcND$gBOQ(#M(egFUfzW@stJ-jmipoC4Ui7o&Dm;e_fxQZ&K0AWnSjQ{`ueE<tz0"
        "Lcr*k{<vqcgg?&w`PW3c^BK6|J9?Co&Nv;Y)wBrM`Q%YO_E%8WD5WQ0RN1%ho?3I000eS0Gj{+u>Vs4P6n%q3%Or"
        "|>;M1&T_qDP08(A&qXI@)Hva$s5n4k$oIEaN%|QnM9{>OVVIdI+nt)yA>m&dZGvWXME;S!6KtCuL^#A}a0FwX!00"
        "000000000000000093|Nl!IgaBv%|Nr>_{{R3000000002(_UH<?800000"
    ),
}
# fmt: on
"""Of each vocabulary 512 bytes in base 85: a weight a byte, then one a pair."""
